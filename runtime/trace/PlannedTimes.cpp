// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/PlannedTimes.h"

namespace rota {

/// ActionTemplate::estimate of each action, [stage][action]; nothing where no
/// computation has one.
static std::optional<std::vector<std::vector<double>>>
estimatesOf(const Program &program) {
  std::vector<std::vector<double>> seconds;
  bool isKnown = false;
  for (const Stage &stage : program.stages) {
    std::vector<double> &row = seconds.emplace_back();
    for (const PlannedAction &action : stage.actions) {
      const ActionTemplate &actionTemplate =
          stage.templates[action.templateNumber];
      row.push_back(actionTemplate.estimate);
      isKnown |=
          isCompute(actionTemplate.kind) && actionTemplate.estimate > 0.0;
    }
  }
  if (!isKnown)
    return std::nullopt;
  return seconds;
}

std::optional<Clock> plannedTimes(const Program &program) {
  auto seconds = estimatesOf(program);
  Clock clock;
  std::string error;
  if (!seconds ||
      !runClock(program, *seconds, ActionSeconds::Planned, clock, error))
    return std::nullopt;
  return clock;
}

std::optional<double> plannedSteadySeconds(const Program &program) {
  auto seconds = estimatesOf(program);
  double step = 0.0;
  std::string error;
  if (!seconds ||
      !runSteadyClock(program, *seconds, ActionSeconds::Planned, step, error))
    return std::nullopt;
  return step;
}

} // namespace rota
