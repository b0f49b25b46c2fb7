// SPDX-License-Identifier: Apache-2.0
#include "passes/pipeline/timeline/SteadyStep.h"

#include <algorithm>

namespace rota::pipe {

/// Actions that are simulated at most, but for three steps.
static constexpr int64_t kSteadyActions = int64_t(1) << 21;

std::optional<SteadyStep> steadyStep(const Timeline &timeline,
                                     const CostTable &costs, double stepEnd) {
  int64_t actions = 0;
  double work = 0;
  for (const std::vector<Action> &row : timeline.ranks) {
    actions += static_cast<int64_t>(row.size());
    work += workOf(row, costs);
  }
  std::optional<double> time =
      steadyStepTime(actions, kSteadyActions, [&](int64_t steps) {
        return simulateSteps(timeline, costs, steps, stepEnd);
      });
  if (!time)
    return std::nullopt;
  double rows = costs.lent && costs.cores > 0
                    ? double(costs.cores) / double(costs.ranksOfRow)
                    : double(timeline.ranks.size());
  double share = (*time - stepEnd) * rows;
  return SteadyStep{*time, share > 0 ? std::max(0.0, 1 - work / share) : 0};
}

} // namespace rota::pipe
