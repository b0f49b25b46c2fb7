// SPDX-License-Identifier: Apache-2.0
#include "lowering/report/StepTime.h"

#include <algorithm>

namespace rota {

/// The makespan of an accumulation step before the last.
static double earlierSteps(const pipe::Timeline &timeline,
                           pipe::CostTable costs, double last) {
  for (auto &transfers : costs.transfers)
    for (ActionKind kind : {ActionKind::SumGrad, ActionKind::Refresh})
      transfers[transferStream(kind)] = 0;
  auto simulation = pipe::simulate(timeline, costs);
  return simulation ? simulation->makespan : last;
}

StepTime stepTime(const TransferEstimates &estimates,
                  const pipe::Timeline &timeline, const pipe::CostTable &costs,
                  const pipe::Simulation &simulation) {
  const Program &program = estimates.getProgram();
  StepTime time;
  time.accumulationSteps = program.accumulationSteps;
  time.timeline = simulation.makespan;
  if (time.accumulationSteps > 1)
    time.earlier = earlierSteps(timeline, costs, time.timeline);
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const Stage &stage = program.stages[s];
    time.exchange = std::max(time.exchange, estimates.stepEndSeconds(stage));
    time.update = std::max(time.update, estimates.updateSeconds(stage));
    time.compute = std::max(time.compute, simulation.ranks[s].busy);
  }
  return time;
}

std::optional<pipe::SteadyStep> steadyStep(const StepTime &time,
                                           const pipe::Timeline &timeline,
                                           const pipe::CostTable &costs) {
  return time.accumulationSteps > 1
             ? std::nullopt
             : pipe::steadyStep(timeline, costs, time.end());
}

} // namespace rota
