// SPDX-License-Identifier: Apache-2.0
//
// One rank's training run, from the first step to the saved weights.
#ifndef ROTA_RUNTIME_TRAIN_TRAINING_H
#define ROTA_RUNTIME_TRAIN_TRAINING_H

#include "runtime/train/Data.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/RunData.h"
#include "runtime/train/RunEnd.h"
#include "runtime/train/StepResults.h"
#include "runtime/train/Train.h"
#include "runtime/train/report/Report.h"
#include "runtime/train/report/RunMetrics.h"
#include "runtime/train/report/Throughput.h"
#include "runtime/train/sample/SampleText.h"
#include "runtime/train/sample/Sampler.h"
#include "runtime/train/state/Checkpoints.h"
#include "runtime/train/state/Resume.h"
#include "runtime/train/step/RunValues.h"
#include "runtime/train/step/StepRunner.h"

namespace rota {

class Training {
public:
  Training(const Run &run, Rank &rank, const RunData &data,
           const Identity &identity, ReadAhead &readAhead);

  void run();

private:
  void prepare();
  void continueAfter(const ResumedRun &resumed);
  bool step(int64_t t);
  bool isFirst(int64_t t) const { return t == done + 1; }
  void runStep(int64_t t);
  void leaveOutOfProfile();
  bool tryStep(int64_t t);
  void rollBack(int64_t t);
  void confirmUpdate(int64_t t);
  bool isFinishedAtOnce(int64_t t, StepEnd ends) const;
  void finishPrevious();
  bool finish(const PendingStep &step, StepEnd ends);
  int64_t sequencesBefore(int64_t t) const;
  bool validate(int64_t t);
  void sample(int64_t t);
  void saveCheckpoint(int64_t t);
  double deviceSeconds() const;
  RunSummary summarize();

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
  Sampler sampler;
  const SampleText sampleText;
  Checkpoints checkpoints;
  RunValuesList values;
  RunEnd end;
  RunMetrics metrics;
  int64_t done = 0;     // steps before those of this process
  int64_t consumed = 0; // sequences of training data in them
  StepReport progress;
  double lastEnd = 0.0;             // end of a step, on the device's clock
  const std::optional<double> peak; // operations/s of all devices
  Throughput throughput;
  const int64_t unrecorded; // first steps that are measured
  StepResults results;
  std::optional<PendingStep> previous; // whose results were not read
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_TRAINING_H
