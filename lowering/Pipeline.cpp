// SPDX-License-Identifier: Apache-2.0
//
// The order of the lowering phase.
#include "lowering/Pipeline.h"

#include "ir/rota/model/Roles.h"
#include "lowering/cpu/Passes.h"
#include "lowering/executable/CodeCache.h"
#include "lowering/executable/Trainer.h"
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/NvvmModule.h"
#include "lowering/gpu/Passes.h"
#include "lowering/gpu/ServiceKernels.h"
#include "lowering/kernels/Passes.h"
#include "lowering/memory/MemoryPlan.h"
#include "lowering/memory/PlanVerifier.h"
#include "passes/pipeline/Program.h"
#include "passes/pipeline/drawing/Drawing.h"
#include "runtime/program/Verify.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace rota::lowering {

void buildLowerKernelsPipeline(OpPassManager &manager) {
  manager.addPass(createDecompose());
  // Parts of two composite ops may be equal.
  manager.addPass(createCSEPass());
  manager.addPass(createFormKernels());
  manager.addPass(createVerifyLowered());
}

void registerLoweringPasses() {
  registerKernelsPasses();
  registerCpuPasses();
  registerCpuPipelines();
  registerGpuPasses();
  registerGpuPipelines();
  PassPipelineRegistration<>("lower-kernels",
                             "From the functions of one rank to fused kernels",
                             buildLowerKernelsPipeline);
}

LogicalResult ProgramLowering::selectMachine(const TargetOptions &target) {
  ArrayRef<std::string> chips = target.gpus;
  for (auto [number, chip] : llvm::enumerate(chips)) {
    std::string error = unknownChip(chip);
    if (llvm::is_contained(chips.take_front(number), chip))
      error = "expected each chip once, got '" + chip + "' twice";
    if (!error.empty())
      return emitError(module.getLoc()) << "'target-gpu': " << error;
  }
  auto created = createTargetMachine(module.getLoc(), target);
  if (failed(created))
    return failure();
  machine = std::move(*created);
  kind = target.device;
  device = makeDeviceCode(target, *machine);
  return success();
}

LogicalResult ProgramLowering::formKernels() {
  costs = functionCosts(module);
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  buildLowerKernelsPipeline(manager);
  device->addPasses(manager);
  if (failed(manager.run(module)))
    return failure();
  addTimes(module, costs);
  return success();
}

LogicalResult ProgramLowering::plan() {
  library.emplace(module.getContext(), device->target());
  auto lowered = lowerTasks(module, *library, facts.samples);
  if (failed(lowered))
    return failure();
  tasks = std::move(lowered->tasks);
  launches = std::move(lowered->launches);
  layout = std::move(lowered->layout);
  mlir::pipe::TimelineOp op = mlir::pipe::findTimeline(module);
  if (!op)
    return failure();
  timeline = op.read();
  chunks = readChunks(op->getParentOfType<mlir::pipe::ProgramOp>());
  std::string error;
  if (!memory::planMemory(layout, chunks, timeline, program, error))
    return emitError(module.getLoc()) << error;
  program.device = kind;
  program.accumulationSteps = facts.accumulationSteps;
  return success();
}

/// The operations of one rank for each part of the model, by its forward.
static pipe::PartCosts partCosts(mlir::rota::StackOp stack,
                                 const FunctionCosts &costs,
                                 int64_t lossCalls) {
  using mlir::rota::ModelPart;
  auto costOf = [&](StringRef scope, ModelPart part, double calls) {
    auto name =
        mlir::rota::signatureOf(part, mlir::rota::FunctionKind::Forward).name;
    auto cost = costs.find((scope + name).str());
    return cost == costs.end()
               ? pipe::PartWork()
               : mlir::pipe::costOf(cost->second.training, calls);
  };
  return mlir::pipe::partCosts(
      stack, costOf("", ModelPart::Embed, 1),
      costOf("", ModelPart::Loss, double(lossCalls)), [&](StringRef kind) {
        return costOf((kind + ".").str(), ModelPart::Layer, 1);
      });
}

LogicalResult ProgramLowering::verify() {
  std::string error;
  if (!memory::verifyPlan(layout, chunks, timeline, program, error))
    return emitError(module.getLoc()) << error;
  mlir::pipe::TimelineOp op = mlir::pipe::findTimeline(module);
  program.model = facts.name;
  program.schedule = op.getSchedule();
  program.flopsPerToken = facts.flopsPerToken;
  program.config = facts.config;
  program.optimizer = facts.optimizer;
  program.modelOptions = facts.options;
  if (auto slots = pipe::simulate(timeline, {}))
    program.timeline = pipe::drawGrid(timeline, *slots);
  auto pipeline = op->getParentOfType<mlir::pipe::ProgramOp>();
  mlir::pipe::Bubbles bubbles = mlir::pipe::bubblesOf(
      pipeline, timeline,
      partCosts(pipeline.getStackOp(), costs, program.lossCalls));
  program.bubble = bubbles.withBarrier;
  program.steadyBubble = bubbles.steady;
  mlir::rota::Machine assumed = mlir::rota::machineOf(module);
  addEstimates(costs, assumed, program);
  if (!::rota::verify(program, error))
    return emitError(module.getLoc()) << error;
  program.plan = memory::describePlan(program);
  transfers = explainTransfers(costs, timeline, program, assumed);
  remarkTransfers(module.getLoc(), transfers);
  return success();
}

FailureOr<std::unique_ptr<llvm::Module>>
ProgramLowering::translate(llvm::LLVMContext &context) {
  if (failed(device->addKernels(*tasks, *library)))
    return failure();
  auto code = translateToLLVM(*tasks, context, *machine);
  if (failed(code))
    return failure();
  auto codes = device->makeCode(**code, *library);
  if (failed(codes))
    return failure();
  defineGpuCode(**code, *codes);
  return code;
}

FailureOr<std::string> ProgramLowering::emitText() {
  device->addLaunches(*tasks, *library);
  llvm::LLVMContext context;
  auto code = translate(context);
  if (failed(code))
    return failure();
  addProgramData(**code, program, *machine);
  return emitLLVM(**code);
}

FailureOr<std::string> ProgramLowering::emitPtxText(StringRef chip) {
  llvm::LLVMContext context;
  auto code = translateTrainerKernels(gpuModuleOf(*library), context, chip);
  if (!code)
    return failure();
  return emitPtx(module.getLoc(), *code, chip);
}

FailureOr<std::string> ProgramLowering::emitTasks() {
  std::optional<std::string> source = device->codeOptions();
  if (source)
    *source += " tasks " + digestOf({*tasks, library->getModule()});
  CodeCache cache(source, *machine);
  return cache.findOrMake([&]() -> FailureOr<std::string> {
    llvm::LLVMContext context;
    auto code = translate(context);
    if (failed(code))
      return failure();
    return emitObject(module.getLoc(), **code, *machine);
  });
}

LogicalResult ProgramLowering::link(StringRef output,
                                    const LinkOptions &options) {
  if (failed(device->findTools(module.getLoc(), options)))
    return failure();
  device->addLaunches(*tasks, *library);
  auto kernels = device->emitKernels(*library, *machine);
  if (failed(kernels))
    return failure();
  auto code = emitTasks();
  if (failed(code))
    return failure();
  auto data = emitProgramData(module.getLoc(), program, *machine);
  if (failed(data))
    return failure();
  SmallVector<StringRef> objects{*code, *data};
  llvm::append_range(objects, llvm::make_second_range(kernels->objects));
  return linkTrainer(module.getLoc(), objects, kernels->aliases, output,
                     options);
}

/// The layers of each chunk, kinds by their number in the layout.
memory::ChunkTable ProgramLowering::readChunks(mlir::pipe::ProgramOp op) const {
  llvm::StringMap<int> kinds;
  for (auto [number, kind] : llvm::enumerate(layout.kinds))
    kinds[kind.name] = number;
  memory::ChunkTable table;
  for (auto chunk :
       op.getChunks().getChunks().getAsRange<mlir::pipe::ChunkAttr>()) {
    table.emplace_back();
    for (auto [kind, layer] :
         llvm::zip_equal(chunk.getKinds(), chunk.getLayers()))
      table.back().push_back({kinds.lookup(kind.getValue()), layer});
  }
  return table;
}

} // namespace rota::lowering
