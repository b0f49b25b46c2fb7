// SPDX-License-Identifier: Apache-2.0
#include "lowering/report/StepTime.h"

#include <algorithm>

namespace rota {

/// The makespan of an accumulation step before the last.
static double earlierSteps(const TransferEstimates &estimates,
                           const pipe::Timeline &timeline, double last) {
  pipe::CostTable costs = estimates.costTable(timeline.shape.chunks());
  for (auto &transfers : costs.transfers)
    for (ActionKind kind : {ActionKind::SumGrad, ActionKind::Refresh})
      transfers[transferStream(kind)] = 0;
  auto simulation = pipe::simulate(timeline, costs);
  return simulation ? simulation->makespan : last;
}

StepTime stepTime(const TransferEstimates &estimates,
                  const pipe::Timeline &timeline,
                  const pipe::Simulation &simulation) {
  const Program &program = estimates.getProgram();
  StepTime time;
  time.accumulationSteps = program.accumulationSteps;
  time.timeline = simulation.makespan;
  if (time.accumulationSteps > 1)
    time.earlier = earlierSteps(estimates, timeline, time.timeline);
  for (size_t s = 0; s < program.stages.size(); ++s) {
    const Stage &stage = program.stages[s];
    time.exchange = std::max(time.exchange, estimates.stepEndSeconds(stage));
    time.update = std::max(time.update, estimates.updateSeconds(stage));
    time.compute = std::max(time.compute, simulation.ranks[s].busy);
  }
  return time;
}

} // namespace rota
