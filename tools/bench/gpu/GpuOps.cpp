// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/gpu/GpuOps.h"

#include "lowering/cpu/Object.h"
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/ServiceKernels.h"
#include "lowering/kernels/Passes.h"
#include "lowering/simt/TrainerKernels.h"
#include "passes/optimizer/Passes.h"
#include "tools/Dialects.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace rota::bench {
namespace {

DialectRegistry allLevels() {
  DialectRegistry registry;
  registerAllLevels(registry);
  return registry;
}

/// The tensors and launches of one function.
class LaunchPlanner {
public:
  explicit LaunchPlanner(lowering::KernelLibrary &library) : library(library) {}

  LogicalResult add(func::FuncOp function) {
    for (Value argument : function.getArguments())
      addBuffer(argument, /*isGiven=*/true);
    for (Operation &op : function.getBody().front()) {
      if (op.hasTrait<OpTrait::IsTerminator>() ||
          op.hasTrait<OpTrait::ConstantLike>())
        continue;
      if (failed(add(op)))
        return failure();
    }
    return success();
  }

  GpuOps::Function planned;

private:
  void addBuffer(Value value, bool isGiven) {
    auto type = cast<RankedTensorType>(value.getType());
    Type element = type.getElementType();
    numbers[value] = int64_t(planned.buffers.size());
    planned.buffers.push_back(
        {element.isBF16()  ? "bf16"
         : element.isF32() ? "f32"
                           : "i32",
         type.getNumElements() * element.getIntOrFloatBitWidth() / 8, isGiven});
  }

  LogicalResult add(Operation &op) {
    if (!lowering::hasKernels(&op, library))
      return op.emitError("expected an op with kernels");
    SmallVector<bool> overwrite(op.getNumResults(), false);
    auto plan = lowering::planKernels(&op, overwrite, library);
    if (failed(plan))
      return failure();
    if (auto priced = dyn_cast<mlir::rota::CostOpInterface>(op))
      planned.cost += priced.getCost();
    for (Value result : op.getResults())
      addBuffer(result, /*isGiven=*/false);
    auto temporaries = int64_t(planned.buffers.size());
    for (int64_t bytes : plan->temporaries)
      planned.buffers.push_back({"none", bytes, false});
    for (const lowering::KernelCall &call : plan->calls) {
      std::vector<int64_t> arguments;
      for (lowering::KernelArgument argument : call.arguments)
        arguments.push_back(numberOf(op, argument, temporaries));
      planned.launches.push_back(
          {call.symbol, library.getLaunchShape(call.symbol), arguments});
    }
    return success();
  }

  int64_t numberOf(Operation &op, lowering::KernelArgument argument,
                   int64_t temporaries) const {
    using Kind = lowering::KernelArgument::Kind;
    if (argument.kind == Kind::Temporary)
      return temporaries + argument.index;
    return numbers.lookup(argument.kind == Kind::Result
                              ? Value(op.getResult(argument.index))
                              : op.getOperand(argument.index));
  }

  lowering::KernelLibrary &library;
  llvm::DenseMap<Value, int64_t> numbers;
};

} // namespace

GpuOps::GpuOps()
    : context(allLevels(), MLIRContext::Threading::DISABLED),
      library(&context, lowering::gpuTarget()) {}

GpuOps::~GpuOps() = default;

bool GpuOps::add(StringRef source, StringRef name) {
  auto module = parseSourceString<ModuleOp>(source, &context);
  PassManager passes(&context, ModuleOp::getOperationName());
  passes.addPass(mlir::rota::createBuildUpdates({"adamw"}));
  passes.addPass(lowering::createDecompose());
  passes.addPass(lowering::createFormKernels());
  if (!module || failed(passes.run(*module)))
    return false;
  auto function = module->lookupSymbol<func::FuncOp>(name);
  if (!function) {
    module->emitError() << "expected a function '" << name << "'";
    return false;
  }
  LaunchPlanner planner(library);
  if (failed(planner.add(function)))
    return false;
  planned.push_back(std::move(planner.planned));
  return true;
}

FailureOr<std::string> GpuOps::object(const CodeOptions &options) {
  if (failed(verify(library.getModule())))
    return failure();
  Location loc = library.getModule().getLoc();
  llvm::LLVMContext llvmContext;
  lowering::TargetOptions target;
  target.cpu = options.cpu;
  StringRef chip = options.isEmulated ? "sm_80" : "";
  auto translate = options.hasServices ? lowering::translateTrainerKernels
                                       : lowering::translateForGpu;
  auto gpu = translate(lowering::gpuModuleOf(library), llvmContext, chip);
  auto host = lowering::createTargetMachine(loc, target);
  if (!gpu || failed(host))
    return failure();
  llvm::Module object("kernels", llvmContext);
  object.setTargetTriple((*host)->getTargetTriple());
  object.setDataLayout((*host)->createDataLayout());
  std::vector<lowering::GpuCode> codes;
  if (options.isEmulated) {
    auto code = lowering::linkHostKernels(loc, object, *gpu, **host, {});
    if (failed(code))
      return failure();
    codes.push_back(*code);
  } else {
    for (StringRef chip : lowering::trainerChips()) {
      auto text = lowering::emitPtx(loc, *gpu, chip);
      if (failed(text))
        return failure();
      codes.push_back(
          lowering::gpuCode(object, chip, /*isAssembled=*/false, *text));
    }
  }
  lowering::defineGpuCode(object, codes);
  return lowering::emitObject(loc, object, **host);
}

llvm::ArrayRef<RotaGpuCode> GpuOps::link(const CodeOptions &options) {
  auto code = object(options);
  if (failed(code))
    return {};
  linked = LinkedCode::link(*code);
  if (!linked)
    return {};
  auto *forms = linked->find<const RotaGpuCode *>("rotaGpuCode");
  auto *count = linked->find<const int64_t *>("rotaGpuCodeCount");
  return forms && count ? llvm::ArrayRef(forms, size_t(*count))
                        : llvm::ArrayRef<RotaGpuCode>();
}

} // namespace rota::bench
