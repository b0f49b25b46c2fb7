// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/EngineRuns.h"

#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "runtime/program/AdapterNames.h"
#include "runtime/text/Text.h"
#include "tools/planner/LooseJson.h"

#include "llvm/ADT/StringExtras.h"

namespace rota {

using engines::EngineRun;

/// The compute actions of a timeline, of whole chunks: a forward begins with
/// the chunk's first part, a backward with its last.
static pipe::Timeline computeActions(const pipe::Timeline &timeline) {
  pipe::Timeline whole = timeline;
  int parts = timeline.shape.parts;
  whole.shape.parts = 1;
  for (std::vector<Action> &row : whole.ranks) {
    std::vector<Action> kept;
    for (Action action : row) {
      bool isForward = action.kind == ActionKind::Forward;
      if (!isCompute(action.kind) ||
          action.chunk % parts != (isForward ? 0 : parts - 1))
        continue;
      action.chunk /= parts;
      action.startsPair &= parts == 1;
      kept.push_back(action);
    }
    row = std::move(kept);
  }
  return whole;
}

static void setMesh(EngineRun &run, const Program &program) {
  for (const MeshAxis &axis : program.mesh)
    for (auto [name, size] : {std::pair("data", &run.data),
                              {"fsdp", &run.fsdp},
                              {"stage", &run.stage},
                              {"expert", &run.expert},
                              {"context", &run.context},
                              {"sequence", &run.sequence},
                              {"tensor", &run.tensor}})
      if (axis.name == name)
        *size = axis.size;
}

static void setPipeline(EngineRun &run, const Plan &plan) {
  const pipe::Shape &shape = plan.timeline.shape;
  run.repeats = shape.repeats;
  run.isV = shape.placement == pipe::Placement::V;
  run.delay = plan.timeline.delay;
  int chunks = shape.stages * shape.repeats;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    run.layers.push_back(0);
    for (int part = 0; part < shape.parts; ++part)
      run.layers.back() +=
          int64_t(plan.chunks[chunk * shape.parts + part].size());
  }
  if (shape.hasUnpipelined)
    run.unpipelined = int64_t(plan.chunks.back().size());
  if (shape.stages == 1 || shape.hasUnpipelined)
    return;
  pipe::Timeline compute = computeActions(plan.timeline);
  if (auto slots = pipe::simulate(compute, pipe::CostTable()))
    run.timeline = pipe::drawCsv(compute, *slots);
}

static void setOptimizer(EngineRun &run, const PlanRequest &request) {
  const OptimizerOptions &optimizer = request.optimizer;
  run.optimizer = request.compiler.shard.optimizer;
  run.rateSchedule = nameOf(optimizer.schedule);
  run.isNesterov = request.compiler.shard.nesterov;
  run.numbers = {{"learning-rate", optimizer.learningRate},
                 {"min-learning-rate", optimizer.minLearningRate},
                 {"decay-share", optimizer.decayShare},
                 {"warmup-steps", double(optimizer.warmupSteps)},
                 {"gradient-clip", optimizer.gradientClip}};
  for (const ProgramOption &own : optimizer.own)
    run.numbers[own.name] = own.value;
  if (auto balance = request.compiler.build.routers.balance)
    run.numbers["load-balance-loss"] = *balance;
}

/// Whether a run computes in bf16: by its flag or its configuration.
static bool isBf16(const mlir::rota::BuildOptions &build,
                   const std::string &config) {
  if (build.compute)
    return *build.compute == mlir::rota::ComputeType::BF16;
  json::Json keys = json::parseJson(config);
  return json::text(keys, "dtype") == "bfloat16" ||
         json::text(keys, "torch_dtype") == "bfloat16";
}

/// Flags that no engine has, with what these do instead.
static std::vector<std::pair<std::string, std::string>>
unknownOf(const CompilerOptions &compiler) {
  std::vector<std::pair<std::string, std::string>> flags;
  const char *allTrain = "no setting there says which parameters train: all do";
  if (!compiler.freeze.patterns.empty())
    flags.push_back({"freeze " + compiler.freeze.patterns, allTrain});
  const mlir::rota::AdapterOptions &adapters = compiler.build.adapters;
  if (adapters.rank > 0)
    flags.push_back({std::string(kLoraRank) + " " +
                         std::to_string(adapters.rank) + ", " + kLoraAlpha +
                         " " + numberText(adapters.alpha) + ", " +
                         kLoraTargets + " " + llvm::join(adapters.targets, ","),
                     allTrain});
  if (int64_t pieces = compiler.build.experts.pieces; pieces > 1)
    flags.push_back({"expert-pieces " + std::to_string(pieces),
                     "the rows of a sequence travel together"});
  if (auto end = compiler.build.documentEnd)
    flags.push_back({"document-mask, end token " + std::to_string(*end),
                     "what a query sees of other documents is a setting of the "
                     "data, which are to be added"});
  return flags;
}

/// The exchange of keys and values: of `auto`, whether it has chosen to gather
/// them, so that nothing travels around a ring.
static std::string contextExchangeOf(const CompilerOptions &compiler,
                                     const Plan &plan) {
  using mlir::rota::ContextExchange;
  ContextExchange exchange = compiler.shard.exchange;
  auto isInRing = [](const TransferReport &transfer) {
    return transfer.facts.kind == "permute" && transfer.facts.axes == "context";
  };
  if (exchange == ContextExchange::Auto &&
      llvm::none_of(plan.transfers, isInRing))
    exchange = ContextExchange::Gather;
  return nameOf(exchange);
}

EngineRun engineRunOf(const PlanRequest &request, const PlanAnswer &answer,
                      std::optional<int64_t> steps) {
  const CompilerOptions &compiler = request.compiler;
  const Program &program = answer.plan.program;
  EngineRun run;
  run.config = program.config;
  run.modelName = program.model;
  setMesh(run, program);
  setPipeline(run, answer.plan);
  run.microbatches = program.microbatches;
  run.accumulate = program.accumulationSteps;
  if (program.input.shape.size() >= 2) {
    run.batch = program.input.shape[0] * run.microbatches * run.accumulate;
    run.length = program.input.shape[1];
  }
  run.schedule = compiler.schedule.schedule;
  run.remat = compiler.differentiate.remat;
  run.weightGather = nameOf(
      pipe::resolvedMode(compiler.complete.mode, answer.plan.timeline.shape));
  run.contextExchange = contextExchangeOf(compiler, answer.plan);
  run.tensorExchange = nameOf(compiler.shard.tensorExchange);
  run.isBf16 = isBf16(compiler.build, run.config);
  using mlir::rota::UpdateType;
  run.hasBf16Gradients = compiler.shard.gradientDtype == UpdateType::BF16;
  run.hasBf16States = compiler.shard.stateDtype == UpdateType::BF16;
  run.shardsOptimizer = compiler.shard.shardOptimizer;
  run.expertCapacity = compiler.build.experts.capacity;
  run.expertBuffer = compiler.build.experts.buffer;
  run.routerZLoss = compiler.build.routers.zLoss;
  run.zLoss = compiler.build.zLoss;
  run.lossBlocks = compiler.build.lossBlocks;
  run.unknown = unknownOf(compiler);
  setOptimizer(run, request);
  run.steps = steps;
  return run;
}

} // namespace rota
