// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/Forecast.h"

#include "runtime/program/RuntimeMemory.h"
#include "runtime/program/State.h"

#include <algorithm>
#include <cmath>

namespace rota {

/// The type of the parameter with the most elements, in products.
static ElementType typeOfProducts(const Program &program) {
  auto elements = [](const Parameter &parameter) {
    int64_t count = 1;
    for (int64_t size : parameter.shape)
      count *= size;
    return count;
  };
  auto largest =
      std::max_element(program.parameters.begin(), program.parameters.end(),
                       [&](const Parameter &a, const Parameter &b) {
                         return elements(a) < elements(b);
                       });
  return largest == program.parameters.end() ? ElementType::F32
                                             : largest->compute;
}

Forecast forecast(const Plan &plan, bool hasBarrier) {
  const Program &program = plan.program;
  const mlir::rota::Machine &machine = plan.machine;
  int64_t ranks = rankCount(program);
  Forecast result;
  result.machine = machine.name;
  result.devices = machine.cores > 0 ? std::min(machine.cores, ranks) : ranks;
  TransferEstimates estimates(plan.costs, program, machine);
  pipe::CostTable costs = estimates.costTable(plan.timeline.shape.chunks());
  if (auto simulation = pipe::simulate(plan.timeline, costs)) {
    result.time = stepTime(estimates, plan.timeline, costs, *simulation);
    result.bubble = simulation->bubble;
  }
  result.stepSeconds = result.time.seconds();
  if (auto steady = hasBarrier
                        ? std::nullopt
                        : steadyStep(result.time, plan.timeline, costs)) {
    result.stepSeconds = steady->time;
    result.bubble = steady->bubble;
  }
  result.tokens =
      static_cast<double>(program.stepSequences() * program.input.shape[1]);
  bool isBF16 = typeOfProducts(program) == ElementType::BF16;
  result.peak = static_cast<double>(result.devices) *
                machine.peakOf(isBF16 ? "bf16" : "f32");
  result.flopsPerToken = program.flopsPerToken;
  result.fullFlopsPerToken = plan.fullFlopsPerToken;
  result.transfers = sumOverAxes(plan.transfers);
  for (size_t stage = 0; stage < program.stages.size(); ++stage)
    result.bytes = std::max(result.bytes, deviceBytes(program, stage));
  return result;
}

std::optional<Campaign> campaign(const Forecast &step, double stateBytes,
                                 const CampaignRequest &request) {
  if (request.tokens == 0 && request.hoursBetweenFailures == 0)
    return std::nullopt;
  Campaign run;
  auto devices = static_cast<double>(step.devices);
  if (request.hoursBetweenFailures > 0) {
    double between = 3600 * request.hoursBetweenFailures / devices;
    double written = stateBytes / request.storageBytesPerSecond;
    double part = written / (2 * between);
    run.checkpointSeconds = written;
    run.interval = part < 1 ? std::sqrt(2 * written * between) *
                                      (1 + std::sqrt(part) / 3 + part / 9) -
                                  written
                            : between;
    run.goodput =
        run.interval / (between * std::exp(written / between) *
                        std::expm1((run.interval + written) / between));
  }
  run.seconds = request.tokens / step.tokensPerSecond() / run.goodput;
  run.deviceHours = run.seconds / 3600 * devices;
  run.cost = run.deviceHours * request.price;
  return run;
}

double stateBytes(const Program &program) {
  double bytes = 0;
  for (const StateTensor &tensor : stateTensors(program))
    bytes += static_cast<double>(tensor.bytes());
  return bytes;
}

} // namespace rota
