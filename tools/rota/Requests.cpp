// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Requests.h"

#include "passes/pipeline/schedules/Schedules.h"
#include "runtime/program/Text.h"
#include "tools/rota/OptimizerOptions.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace rota {
namespace {

/// Program::modelOptions.
std::vector<ModelOption> modelOptions(const RunOptions &options) {
  std::vector<ModelOption> chosen;
  for (auto [name, value] :
       {std::pair("expert-capacity", options.experts.capacity),
        std::pair("router-bias-rate", options.routerBiasRate)})
    if (value > 0)
      chosen.push_back({name, numberText(value)});
  if (options.loadBalanceOver == mlir::rota::LoadBalanceOver::Step)
    chosen.push_back({"load-balance-over", "step"});
  return chosen;
}

mlir::rota::ShardPipelineOptions shardOptions(const RunOptions &options) {
  mlir::rota::ShardPipelineOptions shard;
  shard.meshText = options.mesh;
  shard.rules = llvm::join(options.shardingRules, ",");
  shard.shardOptimizer = options.shardOptimizer;
  shard.mode = options.sharding;
  shard.contextExchange = options.contextExchange;
  shard.updates = updatesOf(options);
  return shard;
}

mlir::pipe::CompleteTimelineOptions completeOptions(const RunOptions &options) {
  mlir::pipe::CompleteTimelineOptions complete;
  complete.mode = options.weightGather.value_or(complete.mode);
  complete.window = options.window.value_or(complete.window);
  complete.prefetch = options.prefetch.value_or(complete.prefetch);
  if (options.given.contains("remat"))
    complete.policy = options.remat;
  return complete;
}

CompilerOptions compilerOptions(const RunOptions &options) {
  CompilerOptions compiler;
  compiler.model = options.model;
  compiler.build = buildOptions(options);
  compiler.schedule = options;
  compiler.differentiate.remat = options.remat;
  if (llvm::is_contained(options.write, "logits"))
    compiler.differentiate.extract = "logits";
  compiler.shard = shardOptions(options);
  compiler.complete = completeOptions(options);
  compiler.target = options.target;
  compiler.link = {options.linker, options.ptxas};
  compiler.accumulationSteps = options.accumulate;
  compiler.optimizer = optimizerText(options);
  compiler.modelOptions = modelOptions(options);
  compiler.memory = options.memory;
  compiler.memoryText = options.memoryText;
  return compiler;
}

} // namespace

PlanRequest planRequest(const RunOptions &options) {
  PlanRequest request{compilerOptions(options), options.optimizer,
                      options.skip};
  request.chooseRemat = options.remat == kAutoRemat;
  request.chooseActivations = options.memory > 0 &&
                              pipe::isSearch(options.schedule) &&
                              !options.given.contains("activations");
  return request;
}

TimelineRequest timelineRequest(const RunOptions &options) {
  auto given = [&](const char *name, auto value) {
    return options.given.contains(name) ? std::optional(value) : std::nullopt;
  };
  TimelineRequest request;
  request.schedule = options.schedule;
  request.stages = given("ranks", int(options.stages));
  request.repeats = given("chunks", int(options.repeats));
  request.microbatches = given("microbatches", int(options.microbatches));
  request.placement = given("placement", options.placement);
  request.delay = int(options.delay);
  request.activations = options.activations;
  request.splitBackward = given("split-backward", options.splitBackward);
  request.pairs = options.pairs;
  request.unpipelined = options.unpipelined;
  request.communication = options.communication;
  request.offload = options.offload;
  request.weightGather = options.weightGather;
  request.window = options.window;
  request.prefetch = options.prefetch;
  request.costs = options.costs;
  return request;
}

} // namespace rota
