// SPDX-License-Identifier: Apache-2.0
//
// One rank's training run, from the first step to the saved weights.
#ifndef ROTA_RUNTIME_TRAIN_TRAINING_H
#define ROTA_RUNTIME_TRAIN_TRAINING_H

#include "runtime/train/Data.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/RunData.h"
#include "runtime/train/RunEnd.h"
#include "runtime/train/Train.h"
#include "runtime/train/report/Report.h"
#include "runtime/train/report/RunMetrics.h"
#include "runtime/train/state/Checkpoints.h"
#include "runtime/train/state/Resume.h"
#include "runtime/train/step/RunValues.h"
#include "runtime/train/step/StepRunner.h"

#include <array>

namespace rota {

class Training {
public:
  Training(const Run &run, Rank &rank, const RunData &data,
           const Identity &identity, ReadAhead &readAhead);

  void run();

private:
  /// A step that the device, or other ranks, may still work on.
  struct Pending {
    int64_t number = 0;
    double learningRate = 0.0;
    std::unique_ptr<HostRead> results; // RuntimeMemory::result and losses
    Device::TimePoint end = 0;
  };

  void prepare();
  void continueAfter(const ResumedRun &resumed);
  bool step(int64_t t);
  bool tryStep(int64_t t);
  void rollBack(int64_t t);
  void startGathers(const Pending &now);
  int64_t sequencesBefore(int64_t t) const;
  bool finish(const Pending &pending, StepEnd ends);
  void readResults(const Pending &pending);
  double readBubble(int64_t t);
  bool validate(int64_t t);
  void saveCheckpoint(int64_t t);
  double deviceSeconds() const;
  RunSummary summarize();
  void measure(double seconds);
  void save();

  const Program &program;
  const Options &options;
  const RunData &data;
  const Identity &identity;
  const Weights *weights;
  Rank &rank;
  BatchLoader loader;
  TimeUseClock time;
  Report report;
  const bool hasBarrier; // whether ranks wait for each other after each step
  Executor executor;
  Optimizer optimizer;
  PhaseTimes phases;
  StepRunner runner;
  Evaluation evaluation;
  Checkpoints checkpoints;
  RunValuesList values;
  RunEnd end;
  RunMetrics metrics;
  int64_t done = 0;     // steps before those of this process
  int64_t consumed = 0; // sequences of training data in them
  StepReport progress;
  double lastEnd = 0.0;             // of a step, on the device's clock
  double stepSeconds = 0.0;         // a moving mean
  const std::optional<double> peak; // operations/s of all devices
  const int64_t unrecorded;         // first steps that are measured
  std::optional<Pending> previous;
  // Of steps with an even and an odd number: one may begin before what the
  // other ranks say of the one before is read.
  std::array<TableSums, 2> tables;
  std::array<BubbleGather, 2> bubbles;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_TRAINING_H
