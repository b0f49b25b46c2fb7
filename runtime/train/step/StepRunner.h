// SPDX-License-Identifier: Apache-2.0
//
// The work of a training step, the same each time: for each accumulation step
// the timeline and its losses, then gradients and updates.
#ifndef ROTA_RUNTIME_TRAIN_STEP_STEPRUNNER_H
#define ROTA_RUNTIME_TRAIN_STEP_STEPRUNNER_H

#include "runtime/train/step/Executor.h"
#include "runtime/train/step/Optimizer.h"
#include "runtime/train/step/PhaseTimes.h"
#include "runtime/train/step/StepRecording.h"

namespace rota {

class StepRunner {
public:
  StepRunner(Rank &rank, Executor &executor, Optimizer &optimizer,
             const Options &options, PhaseTimes &phases)
      : rank(rank), executor(executor), optimizer(optimizer), phases(phases),
        losses(rank), recording(rank, executor, options) {}

  /// Asks for the work of a step, as StepRecording::run; load(accumulationStep)
  /// brings the data of each of its Program::accumulationSteps. A step of
  /// several accumulation steps is not recorded. The step's result lies at
  /// RuntimeMemory::result. False: nothing was updated, since the update of the
  /// step before was wrong (Optimizer::isUpdateRight).
  bool run(bool mayRecord, FunctionRef<void(int64_t accumulationStep)> load);

  /// Whether steps are replayed, and how many were so far.
  bool isRecorded() const { return recording.isMade(); }
  int64_t replays() const { return recording.replays(); }
  /// Device::launches of a step: of the last one that was not a replay.
  int64_t launches() const { return stepLaunches; }

private:
  bool ask(bool mayRecord, FunctionRef<void(int64_t accumulationStep)> load);
  void timeline(int64_t accumulationStep, bool records);
  bool endStep();

  Rank &rank;
  Executor &executor;
  Optimizer &optimizer;
  PhaseTimes &phases;
  LossGather losses;
  StepRecording recording;
  int64_t stepLaunches = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_STEPRUNNER_H
