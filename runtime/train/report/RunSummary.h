// SPDX-License-Identifier: Apache-2.0
//
// The numbers at the end of a run, as JSON and as lines for people.
#ifndef ROTA_RUNTIME_TRAIN_REPORT_RUNSUMMARY_H
#define ROTA_RUNTIME_TRAIN_REPORT_RUNSUMMARY_H

#include "runtime/train/report/RankReport.h"
#include "runtime/train/report/TimeUse.h"

#include <nlohmann/json_fwd.hpp>
#include <optional>

namespace rota {

struct StepReport;

struct RunSummary {
  int64_t stepsBefore = 0;         // those of earlier processes
  int64_t tokens = 0;              // in this process's steps
  TimeUse time;                    // rank 0's
  std::optional<double> peakFlops; // sum over all devices, where known
  std::vector<RankReport> ranks;

  /// Over the time of the steps alone.
  double tokensPerSecond() const;
  std::optional<double> utilization(const Program &program) const;
  /// Seconds in which a rank waited for messages, transfers, collectives of
  /// tasks, and what is exchanged between two runs of the timelines, while
  /// their bytes moved; a mean over the ranks.
  double exposedSeconds() const;
  /// Exposed seconds as a share of the time of the steps.
  double exposedShare() const;
  /// The largest of all ranks.
  int64_t plannedBytes() const, reachedBytes() const;
};

/// The object of the last line of `--json` and of summary.json.
nlohmann::ordered_json summaryJson(const Program &program,
                                   const StepReport &progress,
                                   const RunSummary &summary);
/// Lines with throughput, use of time, MFU, communication and memory.
std::string summaryText(const Program &program, const RunSummary &summary);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_REPORT_RUNSUMMARY_H
