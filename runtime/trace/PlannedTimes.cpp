// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/PlannedTimes.h"

namespace rota {

std::optional<Clock> plannedTimes(const Program &program) {
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
  Clock clock;
  std::string error;
  if (!isKnown || !runClock(program, seconds, clock, error))
    return std::nullopt;
  return clock;
}

} // namespace rota
