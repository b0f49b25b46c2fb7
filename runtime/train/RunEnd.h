// SPDX-License-Identifier: Apache-2.0
//
// The end of a run: the last step, a step that the user named, a time limit, a
// signal. And the steps after which a checkpoint is written.
#ifndef ROTA_RUNTIME_TRAIN_RUNEND_H
#define ROTA_RUNTIME_TRAIN_RUNEND_H

#include "runtime/train/step/Gather.h"

#include <chrono>

namespace rota {

/// Decisions of all ranks about a step.
struct StepEnd {
  bool isLast = false;
  bool saves = false;         // a checkpoint
  bool isInterrupted = false; // by a signal: the process has little time
};

/// When stop flags are exchanged: at once, or one step late.
enum class Asking {
  Waits, // for the others, at once
  Later  // it learns after a step what they asked for after the one before
};

class RunEnd {
public:
  RunEnd(Rank &rank, const Options &options, Asking asking)
      : options(options), asking(asking), earlier(rank) {}

  /// The time limit counts from here; `done` steps were done before, by another
  /// process.
  void begin(int64_t done) {
    firstDone = done;
    start = std::chrono::steady_clock::now();
  }
  /// Seconds since begin().
  double seconds() const;
  /// The step that ends the run when nothing else does before.
  int64_t lastStep() const;
  /// Decides what follows step `t`, the same on all ranks: what the step's
  /// number asks for, and what one of them asks for, with Asking::Later after
  /// the step before. `isDue`: a checkpoint by the step's number; `asksToSave`:
  /// this rank asks for one. Every rank calls.
  StepEnd decide(int64_t t, bool isDue, bool asksToSave);
  /// Waits for what decide() has left open. Every rank calls, after the last
  /// step.
  void settle();
  /// Seconds that the steps after step `t` may still take.
  double secondsLeft(int64_t t) const;

private:
  const Options &options;
  const Asking asking;
  NumberGather earlier; // what ranks asked for after the step before
  int64_t firstDone = 0;
  std::chrono::steady_clock::time_point start;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RUNEND_H
