// SPDX-License-Identifier: Apache-2.0
//
// The compiler read top-down: what, where, when, how.
#include "tools/rota/Compile.h"

#include "ir/pipe/Pipe.h"
#include "lowering/cpu/Object.h"
#include "lowering/executable/Link.h"
#include "lowering/executable/Trainer.h"
#include "lowering/kernels/Passes.h"
#include "lowering/memory/MemoryPlan.h"
#include "lowering/memory/PlanVerifier.h"
#include "passes/differentiate/Passes.h"
#include "passes/optimizer/Optimizers.h"
#include "passes/pipeline/Passes.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/drawing/Drawing.h"
#include "passes/shard/Passes.h"
#include "runtime/program/Verify.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace rota {
namespace {

constexpr std::pair<std::string_view, Level> kLevels[] = {
    {"rota", Level::Rota},       {"differentiated", Level::Differentiated},
    {"sharded", Level::Sharded}, {"pipe", Level::Pipe},
    {"kernels", Level::Kernels}, {"llvm", Level::LLVM},
    {"ptx", Level::PTX},         {"executable", Level::Executable}};

class Compilation {
public:
  Compilation(mlir::rota::BuiltModel &model, const RunOptions &options,
              const std::string &output)
      : options(options), output(output), name(model.name),
        module(std::move(model.module)), loc(module->getLoc()) {}

  LogicalResult run() {
    std::optional<Level> emit = parseLevel(options.emit);
    if (!emit)
      return emitError(loc) << "expected a level out of " << levelNames()
                            << ", got '" << options.emit << "'";
    if (emit == Level::PTX)
      return emitError(loc) << "expected a level that this build can emit, got "
                               "'ptx': it has no GPU part";
    if (emit == Level::Rota)
      return print();
    if (failed(differentiate()))
      return failure();
    if (emit == Level::Differentiated)
      return print();
    if (failed(shard()))
      return failure();
    if (emit == Level::Sharded)
      return print();
    if (failed(pipeline()))
      return failure();
    if (emit == Level::Pipe)
      return print();
    if (failed(formKernels()))
      return failure();
    if (emit == Level::Kernels)
      return print();
    if (failed(plan()) || failed(checkPlan()) || failed(emitCode()))
      return failure();
    if (options.explain)
      llvm::errs() << describeTransfers(transfers, Assumptions());
    if (emit == Level::LLVM)
      return writeLLVM();
    return writeExecutable();
  }

  FailureOr<Plan> runPlan(bool checked) {
    if (failed(differentiate()) || failed(shard()) || failed(pipeline()) ||
        failed(formKernels()) || failed(plan()) ||
        (checked && failed(checkPlan())))
      return failure();
    return Plan{std::move(program), std::move(costs), std::move(transfers)};
  }

private:
  LogicalResult print() {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    stream << "\n";
    return lowering::writeText(loc, text, output);
  }

  LogicalResult runPasses(llvm::function_ref<void(OpPassManager &)> build) {
    PassManager manager(module->getContext(), ModuleOp::getOperationName());
    build(manager);
    return manager.run(*module);
  }

  /// What: forward and backward functions, residuals settled.
  LogicalResult differentiate() {
    if (failed(countFlops()))
      return failure();
    mlir::rota::DifferentiatePipelineOptions settings;
    settings.remat = options.remat;
    settings.split = options.splitBackward || fileSplitsBackward();
    if (llvm::is_contained(options.write, "logits"))
      settings.extract = "logits";
    if (StringRef(options.remat).contains(':') && failed(readStages(settings)))
      return failure();
    return runPasses([&](OpPassManager &manager) {
      mlir::rota::buildDifferentiatePipeline(manager, settings);
    });
  }

  /// Which layers are on which stage, for policies of stages. What is wrong
  /// with the numbers themselves is for `split-stages` to say.
  LogicalResult readStages(mlir::rota::DifferentiatePipelineOptions &settings) {
    if (options.placement != "loop")
      return emitError(loc) << "'remat': expected placement loop for policies "
                               "of stages, got '"
                            << options.placement << "'";
    int64_t layers = 0;
    for (auto stack : module->getOps<mlir::rota::StackOp>())
      layers = options.pipelineLayers ? options.pipelineLayers
                                      : int64_t(stack.getLayers());
    int64_t parts = options.stages * std::max<int64_t>(1, repeats());
    if (!options.layersPerChunk && layers % parts != 0)
      return emitError(loc) << "'remat': expected chunks of one size for "
                               "policies of stages, got "
                            << layers << " layers and " << parts << " chunks";
    settings.stages = options.stages;
    settings.layersPerChunk =
        options.layersPerChunk ? options.layersPerChunk : layers / parts;
    return success();
  }

  /// Where: local shapes and collectives over the mesh.
  LogicalResult shard() {
    mlir::rota::ShardPipelineOptions settings;
    settings.mesh = options.mesh;
    settings.rules = llvm::join(options.shardingRules, ",");
    settings.shardOptimizer = options.shardOptimizer;
    settings.mode = options.sharding;
    settings.optimizer = mlir::rota::defaultOptimizer.name.str();
    if (failed(runPasses([&](OpPassManager &manager) {
          mlir::rota::buildShardPipeline(manager, settings);
        })))
      return failure();
    costs = functionCosts(*module);
    return success();
  }

  /// True when the schedule is a file with I and W actions. What is wrong with
  /// the file is for `make-timeline` to say.
  bool fileSplitsBackward() const {
    if (!StringRef(options.schedule).ends_with(".csv"))
      return false;
    auto file = llvm::MemoryBuffer::getFile(options.schedule);
    if (!file)
      return false;
    std::string error;
    auto rows = pipe::parseCsv((*file)->getBuffer(), error);
    return rows && llvm::any_of(*rows, [](const auto &row) {
             return llvm::any_of(row, [](const Action &action) {
               return action.kind == ActionKind::BackwardInput;
             });
           });
  }

  /// When: chunks, a verified timeline, messages.
  LogicalResult pipeline() {
    mlir::pipe::PipelineOptions settings;
    settings.schedule = options.schedule;
    settings.stages = options.stages;
    settings.repeats = repeats();
    settings.layersPerChunk = options.layersPerChunk;
    settings.pipelineLayers = options.pipelineLayers;
    settings.placement = options.placement;
    settings.microbatches = options.microbatches;
    settings.delay = options.delay;
    settings.splitBackward = options.splitBackward;
    settings.offloadAll = offloads();
    settings.weightGather = options.weightGather;
    if (options.window)
      settings.window = *options.window;
    if (options.prefetch)
      settings.prefetch = *options.prefetch;
    return runPasses([&](OpPassManager &manager) {
      mlir::pipe::buildPipeline(manager, settings);
    });
  }

  /// Whether the policies of the layers leave anything to the host's memory.
  bool offloads() {
    return module
        ->walk([](func::FuncOp function) {
          for (unsigned i = 0; i < function.getNumArguments(); ++i)
            if (function.getArgAttr(
                    i,
                    mlir::rota::RotaDialect::OffloadAttrHelper::getNameStr()))
              return WalkResult::interrupt();
          return WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// Repeats follow from the layers of a chunk when only those are given.
  int64_t repeats() const {
    bool derived = options.layersPerChunk && !options.given.contains("repeats");
    return derived ? 0 : options.repeats;
  }

  /// How: few fused kernels.
  LogicalResult formKernels() {
    return runPasses([&](OpPassManager &manager) {
      manager.addPass(lowering::createDecompose());
      manager.addPass(createCSEPass());
      manager.addPass(lowering::createFormKernels());
      manager.addPass(lowering::createVerifyLowered());
    });
  }

  /// How: tasks, and a static arena for each rank.
  LogicalResult plan() {
    auto target = lowering::createTargetMachine(loc, {options.targetCpu});
    if (failed(target))
      return failure();
    library.emplace(module->getContext(), lowering::vectorBits(**target));
    auto lowered = lowering::lowerTasks(*module, *library);
    if (failed(lowered))
      return failure();
    tasks = std::move(lowered->tasks);
    layout = std::move(lowered->layout);
    mlir::pipe::TimelineOp timelineOp = mlir::pipe::findTimeline(*module);
    if (!timelineOp)
      return failure();
    timeline = timelineOp.read();
    chunks = chunkTable(layout);
    std::string error;
    if (!memory::planMemory(layout, chunks, timeline, program, error))
      return emitError(loc) << error;
    return success();
  }

  /// Verifies the plan, and says what it is for people.
  LogicalResult checkPlan() {
    std::string error;
    if (!memory::verifyPlan(layout, chunks, timeline, program, error))
      return emitError(loc) << error;
    describe(program);
    draw(timeline, chunks, program);
    if (!verify(program, error))
      return emitError(loc) << error;
    program.plan = memory::describePlan(program);
    transfers = explainTransfers(costs, timeline, program, Assumptions());
    remarkTransfers(loc, transfers);
    return success();
  }

  LogicalResult emitCode() {
    return lowering::buildTrainer(*tasks, *library, program);
  }

  LogicalResult writeLLVM() {
    auto text = lowering::emitLLVM(*tasks, {options.targetCpu});
    if (failed(text))
      return failure();
    return lowering::writeText(loc, *text, output);
  }

  LogicalResult writeExecutable() {
    if (output == "-")
      return emitError(loc) << "expected a path to write the trainer to";
    auto object = lowering::emitObject(*tasks, {options.targetCpu});
    if (failed(object))
      return failure();
    return lowering::linkTrainer(loc, *object, output, {options.linker});
  }

  /// Operations per token of forward and backward: the backward computes two
  /// products for each of forward's.
  LogicalResult countFlops() {
    auto model = mlir::rota::Model::get(*module);
    if (failed(model))
      return failure();
    auto flopsOf = [](func::FuncOp function) {
      double flops = 0;
      function.walk(
          [&](mlir::rota::CostOpInterface op) { flops += op.getCost().flops; });
      return flops;
    };
    double flops = flopsOf(model->embed) + flopsOf(model->loss);
    for (int64_t i = 0, n = model->stack.getLayers(); i < n; ++i)
      flops += flopsOf(mlir::rota::Model::function(
          model->kindOf(i), mlir::rota::FunctionKind::Forward));
    auto tokens = cast<RankedTensorType>(mlir::rota::FunctionRoles(model->embed)
                                             .argument(mlir::rota::Role::Tokens)
                                             .type());
    int64_t count = 1;
    for (int64_t size : tokens.getShape().take_front(2))
      count *= size;
    flopsPerToken = 3.0 * flops / static_cast<double>(count);
    return success();
  }

  void describe(Program &target) const {
    target.model = name;
    target.schedule = options.schedule;
    target.flopsPerToken = flopsPerToken;
  }

  memory::ChunkTable chunkTable(const memory::ModelLayout &layout) {
    llvm::StringMap<int> kinds;
    for (auto [number, kind] : llvm::enumerate(layout.kinds))
      kinds[kind.name] = number;
    memory::ChunkTable table;
    mlir::pipe::ChunksOp chunks = mlir::pipe::findProgram(*module).getChunks();
    for (auto chunk : chunks.getChunks().getAsRange<mlir::pipe::ChunkAttr>()) {
      table.emplace_back();
      for (auto [kind, layer] :
           llvm::zip_equal(chunk.getKinds(), chunk.getLayers()))
        table.back().push_back({kinds.lookup(kind.getValue()), layer});
    }
    return table;
  }

  /// The grid in unit slots, and the bubble when a backward takes twice as long
  /// as a forward and a chunk as long as it has layers.
  static void draw(const pipe::Timeline &timeline,
                   const memory::ChunkTable &chunks, Program &target) {
    if (auto units = pipe::simulate(timeline, {}))
      target.timeline = pipe::drawGrid(timeline, *units);
    pipe::CostTable costs;
    for (const auto &layers : chunks) {
      double count = static_cast<double>(layers.size());
      costs.chunks.push_back({count, 2 * count, count, count});
    }
    if (auto simulation = pipe::simulate(timeline, costs))
      target.bubble = simulation->bubble;
  }

  const RunOptions &options;
  std::string output;
  std::string name;
  OwningOpRef<ModuleOp> module;
  Location loc;
  double flopsPerToken = 0;
  FunctionCosts costs;
  std::vector<TransferReport> transfers;
  memory::ModelLayout layout;
  memory::ChunkTable chunks;
  pipe::Timeline timeline;
  std::optional<lowering::KernelLibrary> library;
  OwningOpRef<ModuleOp> tasks;
  Program program;
};

} // namespace

std::optional<Level> parseLevel(std::string_view name) {
  for (auto [known, level] : kLevels)
    if (known == name)
      return level;
  return std::nullopt;
}

std::string levelNames() {
  std::string names;
  for (auto [name, level] : kLevels)
    names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

LogicalResult compileTrainer(mlir::rota::BuiltModel &model,
                             const RunOptions &options,
                             const std::string &output) {
  return Compilation(model, options, output).run();
}

FailureOr<Plan> planProgram(mlir::rota::BuiltModel &model,
                            const RunOptions &options) {
  return Compilation(model, options, "").runPlan(/*checked=*/true);
}

FailureOr<Plan> estimateProgram(mlir::rota::BuiltModel &model,
                                const RunOptions &options) {
  return Compilation(model, options, "").runPlan(/*checked=*/false);
}

} // namespace rota
