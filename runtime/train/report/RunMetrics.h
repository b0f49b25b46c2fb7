// SPDX-License-Identifier: Apache-2.0
//
// The files of `--metrics`, out of the numbers of a training run.
#ifndef ROTA_RUNTIME_TRAIN_REPORT_RUNMETRICS_H
#define ROTA_RUNTIME_TRAIN_REPORT_RUNMETRICS_H

#include "runtime/metrics/MetricsFolder.h"
#include "runtime/train/report/Report.h"

#include <optional>

namespace rota {

/// Operations per second of all devices of the run: the option's, or those of
/// known GPUs. Nothing where neither says them.
std::optional<double> peakFlops(const Rank &rank, const Options &options);

/// The runs of the timeline that a trace of `--trace` or `--metrics` takes in.
int64_t tracedRuns(const Program &program, const Options &options);

/// Each rank has one; rank 0 writes. Without a folder nothing happens.
class RunMetrics {
public:
  /// Warnings go to `report`.
  RunMetrics(Rank &rank, Executor &executor, const Options &options,
             Report &report);

  /// The steps of this process follow step `done`.
  void continueAfter(int64_t done) { before = done; }

  /// Writes run.json.
  void begin(const std::string &data, int64_t tokensPerStep);

  /// Adds the line of a step, and after the traced steps (or the `last` one)
  /// their trace. Every rank calls; of steps whose line the report `isKept`,
  /// the ranks' transfers are gathered too.
  void step(const StepReport &progress, bool isKept, bool last);

  /// Adds the line of a sample. Rank 0 alone writes.
  void sample(const Sample &sample);

  /// Writes summary.json.
  void end(const StepReport &progress, const RunSummary &summary);

private:
  void addNumbers(const StepReport &progress, bool isKept,
                  std::vector<Metric> &metrics) const;
  void addTransfers(std::vector<Metric> &metrics) const;
  void addMemory(std::vector<Metric> &metrics);
  void note(const std::string &warning);

  Rank &rank;
  Executor &executor;
  const Options &options;
  Report &report;
  const int64_t tracedSteps;
  int64_t before = 0;    // steps before those of this process
  bool isTraced = false; // trace.json is written
  std::optional<std::vector<double>> memory; // [rank][planned, reached]
  std::optional<MetricsFolder> folder;       // rank 0's
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_REPORT_RUNMETRICS_H
