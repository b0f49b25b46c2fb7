// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Requests.h"

#include "passes/pipeline/schedules/Schedules.h"

namespace rota {

PlanRequest planRequest(const RunOptions &options) {
  PlanRequest request{compilerOptions(options), options.optimizer,
                      options.skip};
  const CompilerOptions &compiler = request.compiler;
  request.chooseRepeats = opensRepeats(options);
  request.chooseGathers = opensGathers(options);
  request.chooseRemat = compiler.differentiate.remat == kAutoRemat;
  request.chooseActivations = compiler.memory > 0 &&
                              pipe::isSearch(compiler.schedule.schedule) &&
                              !options.given.contains("activations");
  return request;
}

TimelineRequest timelineRequest(const RunOptions &options) {
  auto given = [&](const char *name, auto value) {
    return options.given.contains(name) ? std::optional(value) : std::nullopt;
  };
  const mlir::pipe::ScheduleLayersOptions &layers = options.compiler.schedule;
  const mlir::pipe::CompleteTimelineOptions &complete =
      options.compiler.complete;
  TimelineRequest request;
  request.schedule = layers.schedule;
  request.stages = given("stages", int(layers.stages));
  request.repeats = given("repeats", int(layers.repeats));
  request.microbatches = given("microbatches", int(layers.microbatches));
  request.placement = given("placement", layers.placement);
  request.delay = int(layers.delay);
  request.activations = layers.activations;
  request.splitBackward = given("split-backward", layers.splitBackward);
  request.pairs = layers.pairs;
  request.unpipelined = options.unpipelined;
  request.communication = options.communication;
  request.offload = options.offload;
  request.weightGather = given("weight-gather", complete.mode);
  request.window = given("window", complete.window);
  request.prefetch = given("prefetch", complete.prefetch);
  request.costs = options.costs;
  // A search may choose between B, and I and W.
  bool isOpen = pipe::isSearch(layers.schedule);
  request.costsAreOfRanks = isOpen && !request.repeats;
  if (isOpen && !request.splitBackward &&
      !options.given.contains("cost-backward"))
    request.costs.backward =
        request.costs.backwardInput + request.costs.backwardWeight;
  return request;
}

} // namespace rota
