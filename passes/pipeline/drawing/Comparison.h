// SPDX-License-Identifier: Apache-2.0
//
// Schedules beside one another, for the same layers on each rank.
#ifndef ROTA_PASSES_PIPELINE_DRAWING_COMPARISON_H
#define ROTA_PASSES_PIPELINE_DRAWING_COMPARISON_H

#include "passes/pipeline/timeline/SteadyStep.h"

namespace rota::pipe {

/// The numbers of one schedule.
struct ComparedSchedule {
  std::string name;
  std::string error; // why there are no numbers; empty: there are
  Shape shape;
  double makespan = 0, bubble = 0, idleShare = 0; // see Simulation
  SteadyStep steady;
  /// Activations of the rank that holds most: wholeActivations.
  double peakActivations = 0;
  /// Activations and gradients that cross ranks in a step.
  int64_t messages = 0;
};

/// The costs of one of R chunks when `costs` are those of all layers of a rank:
/// 1/R of each but the latency of a message. An unpipelined chunk costs what
/// `costs` say.
CostTable costsOfChunks(const Shape &shape, const CostTable &costs);

/// Simulates `timeline`, which must complete, with `costsOfChunks`.
ComparedSchedule compared(const std::string &name, const Timeline &timeline,
                          const CostTable &costs);

/// A line for each schedule. One without numbers has its error below the table.
///
/// The columns "steady step" and "steady bubble" are those of SteadyStep.
std::string drawComparison(const std::vector<ComparedSchedule> &schedules);

/// The comparison as a JSON array of objects; a schedule without numbers has an
/// `error`.
std::string drawComparisonJson(const std::vector<ComparedSchedule> &schedules);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_DRAWING_COMPARISON_H
