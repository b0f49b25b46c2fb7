// SPDX-License-Identifier: Apache-2.0
//
// Costs of actions out of a run's trace, and the step that they give.
#ifndef ROTA_TOOLS_PLANNER_MEASUREDCOSTS_H
#define ROTA_TOOLS_PLANNER_MEASUREDCOSTS_H

#include "passes/pipeline/timeline/SteadyStep.h"

#include <map>
#include <string>

namespace rota {

/// Medians of the training steps of a trace (`rota train --trace`), without the
/// first step where there are more. Seconds.
struct MeasuredCosts {
  std::map<std::pair<int, ActionKind>, double> compute; // by chunk and kind
  std::map<std::pair<int, ActionKind>, double> transfers;
  double send = 0; // the copy of a message
  /// From the last action of a step to the first of the next: of all ranks, or,
  /// without a step barrier, of the one that waits least.
  double stepEnd = 0;
};

/// Reads a trace. Nothing, with the reason in `error`, for a file that is none.
std::optional<MeasuredCosts> readMeasuredCosts(const std::string &path,
                                               std::string &error);

/// The table of these costs for a timeline of as many chunks, which hold the
/// layers that they held in the run. B is I and W where the run had these.
/// Nothing, with the reason in `error`, where an action's cost is unknown.
std::optional<pipe::CostTable> costTable(const MeasuredCosts &measured,
                                         const pipe::Timeline &timeline,
                                         std::string &error);

/// A step by measured costs.
struct MeasuredStep {
  pipe::Simulation simulation;
  pipe::SteadyStep steady; // without a step barrier
  double stepEnd = 0;      // seconds beside the timeline
  double seconds() const { return simulation.makespan + stepEnd; }
};

/// Simulates `timeline` with the costs of the trace at `path`, on `cores` that
/// all ranks share (0: each has its own).
std::optional<MeasuredStep> simulateMeasured(const std::string &path,
                                             const pipe::Timeline &timeline,
                                             int cores, std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_MEASUREDCOSTS_H
