// SPDX-License-Identifier: Apache-2.0
//
// The numbers that a step leaves on the device and on other ranks. They are
// asked for when its work is, and read when they are needed: while the next
// step runs, where the device works on its own or steps have no barrier.
#ifndef ROTA_RUNTIME_TRAIN_STEPRESULTS_H
#define ROTA_RUNTIME_TRAIN_STEPRESULTS_H

#include "runtime/train/report/Report.h"
#include "runtime/train/step/Bubble.h"
#include "runtime/train/step/Executor.h"
#include "runtime/train/step/Optimizer.h"

#include <array>

namespace rota {

/// A step that the device, or other ranks, may still work on.
struct PendingStep {
  int64_t number = 0;
  std::unique_ptr<HostRead> results; // RuntimeMemory::result and losses
  Device::TimePoint end = 0;
};

class StepResults {
public:
  StepResults(Rank &rank, Executor &executor, Optimizer &optimizer,
              bool hasBarrier);

  /// After the work of step `t`. Without a step barrier the rank gives the
  /// others what they report of the step; with its bubble, if `withBubble`.
  PendingStep start(int64_t t, bool withBubble);
  /// Waits for loss, norm, observations and whether the step updates anything,
  /// and writes them to `progress`: of each step, in order. Throws RunError
  /// when one is not finite and the step is not skipped.
  void read(const PendingStep &step, StepReport &progress);
  /// Waits for the measured bubble share at the end of step `t`, on rank 0.
  double bubble(int64_t t);

private:
  Rank &rank;
  Executor &executor;
  Optimizer &optimizer;
  const bool hasBarrier;
  // By step parity: a step may begin before what the other ranks say of the one
  // before is read.
  std::array<TableSums, 2> tables;
  std::array<BubbleGather, 2> bubbles;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEPRESULTS_H
