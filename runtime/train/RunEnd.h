// SPDX-License-Identifier: Apache-2.0
//
// The end of a run: the last step, a step that the user named, a time limit, a
// signal. And the steps after which a checkpoint is written.
#ifndef ROTA_RUNTIME_TRAIN_RUNEND_H
#define ROTA_RUNTIME_TRAIN_RUNEND_H

#include "runtime/train/Rank.h"

#include <chrono>

namespace rota {

/// Decisions of all ranks about a step.
struct StepEnd {
  bool isLast = false;
  bool saves = false;         // a checkpoint
  bool isInterrupted = false; // by a signal: the process has little time
};

class RunEnd {
public:
  explicit RunEnd(const Options &options) : options(options) {}

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
  /// Decides what follows step `t`, the same on all ranks: what one of them
  /// asks for. `saves`: this one asks for a checkpoint. Every rank calls.
  StepEnd decide(Rank &rank, int64_t t, bool saves) const;
  /// Seconds that the steps after step `t` may still take.
  double secondsLeft(int64_t t) const;

private:
  const Options &options;
  int64_t firstDone = 0;
  std::chrono::steady_clock::time_point start;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_RUNEND_H
