// SPDX-License-Identifier: Apache-2.0
//
// The actions of a plan in a simulated step.
#ifndef ROTA_TOOLS_PLANNER_SIMULATEDPLAN_H
#define ROTA_TOOLS_PLANNER_SIMULATEDPLAN_H

#include "tools/compiler/Compile.h"

namespace rota {

/// An action of a stage's ranks. Actions of one stream follow one another.
struct TimedAction {
  Action action;
  /// "compute"; "pair" for the second half of a pair; the name of its kind for
  /// what runs beside computation: a transfer, or one direction of messages.
  const char *stream = "";
  TimeSpan span; // seconds; that of a message is the copy of its bytes
};

struct SimulatedPlan {
  pipe::Simulation simulation;                  // seconds
  std::vector<std::vector<TimedAction>> stages; // beside the timeline's rows
};

/// The costs of the plan's actions in seconds on the machine that the compiler
/// assumes.
pipe::CostTable costTable(const Plan &plan);

/// Simulates the timeline of the plan with these costs. Nothing where the
/// timeline does not complete.
std::optional<SimulatedPlan> simulatePlan(const Plan &plan);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SIMULATEDPLAN_H
