// SPDX-License-Identifier: Apache-2.0
//
// Runs a rank's timeline: actions, waits, calls. There is no schedule in here.
#ifndef ROTA_RUNTIME_TRAIN_STEP_EXECUTOR_H
#define ROTA_RUNTIME_TRAIN_STEP_EXECUTOR_H

#include "runtime/train/step/ActionTransfers.h"
#include "runtime/train/step/ActionWork.h"
#include "runtime/train/step/Cotangents.h"
#include "runtime/train/step/TimelineMarks.h"

#include <functional>

namespace rota {

/// The purpose of a training run, and functions that a rank calls inside of it;
/// empty ones do nothing.
struct RunHooks {
  /// Whether an update follows, which needs the sums of all gradients.
  bool endsStep = true;
  /// Before the run reads parameters that other stages send, and adds to
  /// gradients.
  std::function<void()> beforeUse = {};
  /// The rank's losses, auxiliary sums and tables of the run are written. All
  /// ranks of a pipeline come to this point before any of them has all its
  /// gradients, since each backward of a microbatch follows its loss.
  std::function<void()> lossesKnown = {};
};

class Executor {
public:
  using Mode = RunMode;

  /// `tracedRuns`: see ActionTimes.
  Executor(Rank &rank, int64_t tracedRuns);

  /// Runs the timeline once; in training, for a step of one accumulation step,
  /// after what its forwards need first, the means of what they observe, and
  /// with what its first backward needs, the cotangents of auxiliary losses.
  /// Evaluation, which makes these means out of its own microbatches, gathers
  /// weights and hands over activations; it sends nothing backward and reduces
  /// and copies nothing. The first run after one that ends a step gathers what
  /// that step has updated. Throws RunError as ActionWork.
  void run(Mode mode, const RunHooks &hooks = {});
  /// Runs the forwards of microbatch 0 alone, without loss. A rank that has its
  /// logits then has those of call `block` of the loss at Stage::logits, until
  /// it does anything else. The program `samples`. Throws as run.
  void sample(int64_t block);
  /// To be called before the first run of a step of several accumulation steps:
  /// their cotangents of auxiliary losses need the weight of all accumulation
  /// steps, and means their forwards. load(accumulationStep) brings the data.
  void prepare(FunctionRef<void(int64_t accumulationStep)> load);
  /// A training run while the device records: nothing is measured. It gathers
  /// updated weights whatever was before.
  void record();
  /// The recorded work has run once more.
  void noteReplay() { isUpdated = true; }

  /// The times of the actions of all runs.
  ActionTimes &times() { return actionTimes; }
  const ActionTimes &times() const { return actionTimes; }

private:
  void walk(const RunHooks &hooks);
  void act(int number, KeptCore &core);
  void await(int number, KeptCore &core);
  void observe(int64_t accumulationStep);
  bool happens(ActionKind kind) const;

  Rank &rank;
  const Stage &stage;
  const int actionCount;
  const TimelineMarks marks;
  ActionTimes actionTimes;
  ActionWork work;
  ActionTransfers transfers;
  Cotangents cotangents;
  Mode mode = Mode::Train;
  bool observes = false; // runs forwards alone
  bool endsStep = true;
  // Weights may have been updated since they were gathered. To gather them once
  // more than that changes nothing.
  bool isUpdated = false;
  // By action, for messages; the rank has them too.
  std::shared_ptr<const std::vector<std::string>> positions;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_EXECUTOR_H
