// SPDX-License-Identifier: Apache-2.0
//
// Text IR to native code in memory, through the same planner and pipeline as a
// trainer's kernels.
#include "tools/bench/CompiledOp.h"

#include "lowering/cpu/Object.h"
#include "lowering/kernels/Passes.h"
#include "runtime/device/cpu/CpuDevice.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace rota::bench {

/// The arithmetic of fused kernels has costs, too.
static DialectRegistry withCosts() {
  DialectRegistry registry;
  mlir::rota::registerArithModels(registry);
  return registry;
}

CompiledOp::CompiledOp()
    : context(withCosts(), MLIRContext::Threading::DISABLED) {
  context.loadDialect<mlir::rota::RotaDialect>();
}
CompiledOp::~CompiledOp() = default;

static Operation *findOp(ModuleOp module) {
  Operation *found = nullptr;
  module.walk([&](func::FuncOp function) {
    for (Operation &op : function.getBody().front())
      if (!found && !op.hasTrait<OpTrait::ConstantLike>())
        found = &op;
  });
  return found;
}

static LogicalResult fuse(ModuleOp module) {
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  manager.addPass(lowering::createDecompose());
  manager.addPass(lowering::createFormKernels());
  return manager.run(module);
}

static CompiledOp::Buffer bufferOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return {tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8,
          tensor.getElementType().isInteger()};
}

std::unique_ptr<CompiledOp>
CompiledOp::create(const std::string &source, std::vector<bool> accumulate,
                   const std::string &cpu, llvm::CodeGenOptLevel level,
                   std::optional<lowering::PairProducts> pairs) {
  std::unique_ptr<CompiledOp> compiled(new CompiledOp());
  auto module = parseSourceString<ModuleOp>(source, &compiled->context);
  Operation *op = module ? findOp(*module) : nullptr;
  if (op && !isa<mlir::rota::TaskOpInterface>(op))
    op = succeeded(fuse(*module)) ? findOp(*module) : nullptr;
  if (!op)
    return nullptr;
  accumulate.resize(op->getNumResults(), false);
  SmallVector<bool> flags(accumulate.begin(), accumulate.end());
  lowering::TargetOptions target;
  target.cpu = cpu;
  auto machine = lowering::createTargetMachine(op->getLoc(), target);
  if (failed(machine))
    return nullptr;
  (*machine)->setOptLevel(level);
  compiled->library = std::make_unique<lowering::KernelLibrary>(
      &compiled->context,
      pairs ? lowering::emulatedTarget(*pairs)
            : lowering::vectorTarget(lowering::vectorBits(**machine),
                                     lowering::pairProducts(**machine)));
  auto plan = lowering::planKernels(op, flags, *compiled->library);
  if (failed(plan))
    return nullptr;
  compiled->plan = *plan;
  compiled->operands = op->getNumOperands();
  if (auto priced = dyn_cast<mlir::rota::CostOpInterface>(op))
    compiled->price = priced.getCost();
  for (Type type : op->getOperandTypes())
    compiled->memory.push_back(bufferOf(type));
  for (Type type : op->getResultTypes())
    compiled->memory.push_back(bufferOf(type));
  ModuleOp code = compiled->library->getModule();
  if (failed(mlir::verify(code)) || failed(lowering::lowerToLLVMDialect(code)))
    return nullptr;
  auto object = lowering::emitObject(code, **machine);
  if (failed(object))
    return nullptr;
  compiled->code = LinkedCode::link(*object);
  if (!compiled->code)
    return nullptr;
  for (const lowering::KernelCall &call : compiled->plan.calls) {
    auto kernel = compiled->code->find<RotaCpuKernel>(call.symbol);
    if (!kernel)
      return nullptr;
    compiled->kernels.push_back(kernel);
  }
  return compiled;
}

void CompiledOp::forCalls(std::vector<void *> &buffers, CallRows callRows) {
  // Kept between calls, since a trainer has memory for them from its start.
  static thread_local std::vector<std::vector<char>> temporaries;
  temporaries.resize(std::max(temporaries.size(), plan.temporaries.size()));
  for (auto [bytes, memory] : llvm::zip_first(plan.temporaries, temporaries))
    memory.resize(std::max(memory.size(), size_t(bytes + 64)));
  for (auto [call, kernel] : llvm::zip(plan.calls, kernels)) {
    std::vector<void *> args;
    for (lowering::KernelArgument argument : call.arguments) {
      using Kind = lowering::KernelArgument::Kind;
      if (argument.kind == Kind::Temporary)
        args.push_back(temporaries[argument.index].data());
      else if (argument.kind == Kind::Tiles)
        args.push_back(const_cast<RotaTiles *>(tiles));
      else
        args.push_back(buffers[argument.index +
                               (argument.kind == Kind::Result ? operands : 0)]);
    }
    callRows(call, kernel, args.data());
  }
}

void CompiledOp::run(RotaContext *context, std::vector<void *> buffers) {
  forCalls(buffers, [&](const lowering::KernelCall &call, RotaCpuKernel kernel,
                        void *const *args) {
    rotaLaunch(context, toKernel(kernel), args, call.rows, call.grain);
  });
}

void CompiledOp::runInPieces(int64_t rows, std::vector<void *> buffers) {
  forCalls(buffers, [&](const lowering::KernelCall &call, RotaCpuKernel kernel,
                        void *const *args) {
    int64_t piece = std::max(rows / call.grain, int64_t(1)) * call.grain;
    for (int64_t begin = (call.rows - 1) / piece * piece; begin >= 0;
         begin -= piece)
      kernel(args, begin, std::min(call.rows, begin + piece));
  });
}

std::string CompiledOp::text() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  library->getModule().print(stream);
  return text;
}

} // namespace rota::bench
