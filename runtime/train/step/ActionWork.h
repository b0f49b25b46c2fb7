// SPDX-License-Identifier: Apache-2.0
//
// The work of an action on its rank's device: its clears and the calls of its
// tasks.
#ifndef ROTA_RUNTIME_TRAIN_STEP_ACTIONWORK_H
#define ROTA_RUNTIME_TRAIN_STEP_ACTIONWORK_H

#include "runtime/train/rank/PairThread.h"
#include "runtime/train/step/ActionTimes.h"

namespace rota {

/// Evaluation runs each action's evalCalls and clears nothing. A sample runs
/// the forwards of microbatch 0 alone, and one call of logits.
enum class RunMode { Train, Evaluate, Sample };

class ActionWork {
public:
  ActionWork(Rank &rank, ActionTimes &times);

  /// Whether the action and the next one run at the same time in training: not
  /// with a profile, which has one writer. All ranks of a stage decide alike.
  bool runsAtOnce(int number) const;
  /// Runs an action on `core`, which is kept. Throws RunError that names rank,
  /// stage, chunk, microbatch, action and layer when a task fails.
  void run(int number, RunMode mode, KeptCore &core);
  /// Trains both halves of the pair whose first half is action `number`. On a
  /// GPU each has a stream of its own, on a CPU a thread and a core. Where no
  /// second core is free, the halves take turns: one runs when the other has
  /// ended, or waits for a collective.
  void runPair(int number);
  /// The call of the loss whose logits runs of RunMode::Sample write.
  void setSampledBlock(int64_t block) { sampledBlock = block; }

private:
  /// The outcome of an action's calls.
  struct Done {
    ActionTimes::Span span;
    const Call *failed = nullptr; // the call after which a failure showed
  };
  std::span<const Call> callsOf(const ActionTemplate &form, RunMode mode) const;
  Done work(int number, RunMode mode, RotaContext *context);
  void checkFailed(const Done &done, RotaContext *context);

  Rank &rank;
  ActionTimes &times;
  int64_t sampledBlock = 0;
  // Null where the stage has no pairs, or its device works on its own.
  std::unique_ptr<PairThread> pairThread;
};

/// Runs the task of a call on its offsets, turned into pointers. The caller
/// holds a core and looks at the context's `failed` afterwards.
void runCall(Rank &rank, RotaContext *context, const Call &call,
             std::span<const int64_t> slots, int microbatch);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_ACTIONWORK_H
