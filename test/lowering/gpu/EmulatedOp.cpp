// SPDX-License-Identifier: Apache-2.0
#include "test/lowering/gpu/EmulatedOp.h"

#include "lowering/executable/Buffers.h"
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/NvvmModule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <bit>
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;

namespace rota::test {

TensorBytes::TensorBytes(std::string type, int64_t count, int64_t columns,
                         int64_t stride)
    : type(std::move(type)), count(count), columns(columns), stride(stride),
      storage(bytes() / 64 + 1) {
  std::memset(data(), 0xFF, bytes());
}

/// References read all elements many times: one letter tells the types apart.
double TensorBytes::operator[](int64_t i) const {
  if (type[0] == 'b') {
    uint16_t half;
    std::memcpy(&half, data() + 2 * i, 2);
    return std::bit_cast<float>(uint32_t(half) << 16);
  }
  uint32_t bits;
  std::memcpy(&bits, data() + 4 * i, 4);
  return type[0] == 'i' ? double(int32_t(bits)) : std::bit_cast<float>(bits);
}

void TensorBytes::set(int64_t i, double value) {
  uint32_t bits = type == "i32" ? uint32_t(int32_t(value))
                                : std::bit_cast<uint32_t>(float(value));
  if (type == "bf16")
    bits >>= 16;
  int64_t width = type == "bf16" ? 2 : 4;
  std::memcpy(data() + i * width, &bits, width);
}

EmulatedOp::EmulatedOp() : context(MLIRContext::Threading::DISABLED) {
  context.loadDialect<mlir::rota::RotaDialect>();
}

static Operation *findOp(ModuleOp module) {
  Operation *found = nullptr;
  module.walk([&](func::FuncOp function) {
    for (Operation &op : function.getBody().front())
      if (!found && !op.hasTrait<OpTrait::ConstantLike>())
        found = &op;
  });
  return found;
}

static TensorBytes makeTensor(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  std::string name = element.isBF16()  ? "bf16"
                     : element.isF32() ? "f32"
                                       : "i32";
  if (!tensor.getEncoding())
    return {name, tensor.getNumElements()};
  int64_t columns = tensor.getShape().back();
  int64_t stride = mlir::rota::RowStrideAttr::of(tensor);
  return {name, tensor.getNumElements() / columns * stride, columns, stride};
}

std::unique_ptr<EmulatedOp> EmulatedOp::create(const std::string &text,
                                               std::vector<bool> accumulate,
                                               const std::string &chip) {
  std::unique_ptr<EmulatedOp> made(new EmulatedOp());
  made->hasWarpgroups = chip == "sm_90a";
  made->source = parseSourceString<ModuleOp>(text, &made->context);
  Operation *op = made->source ? findOp(*made->source) : nullptr;
  if (!op) {
    ADD_FAILURE() << "expected a function with an op";
    return nullptr;
  }
  made->library = std::make_unique<lowering::KernelLibrary>(
      &made->context, lowering::gpuTarget());
  Operation *next = op->getNextNode();
  auto pair = made->library->getEmitters().lookupPair(op, next);
  for (Operation *either : {op, pair ? next : nullptr}) {
    if (!either)
      continue;
    for (Type type : either->getOperandTypes())
      made->operands.push_back(makeTensor(type));
    for (Type type : either->getResultTypes())
      made->results.push_back(makeTensor(type));
  }
  made->accumulate.assign(accumulate.begin(), accumulate.end());
  made->accumulate.resize(made->results.size(), false);
  auto plan = pair
                  ? pair(op, next, *made->library)
                  : lowering::planKernels(op, made->accumulate, *made->library);
  if (failed(plan) || failed(verify(made->library->getModule()))) {
    ADD_FAILURE() << "expected kernels";
    return nullptr;
  }
  made->plan = *plan;
  lowering::TaskStep step{lowering::TaskStep::Kind::Kernels, op->getLoc()};
  step.kernels = *plan;
  SmallVector<Operation *> ops{op};
  if (pair)
    ops.push_back(next);
  lowering::addLaunches(ops, step, made->accumulate, *made->library,
                        made->planned);
  auto modules = made->library->getModule().getOps<gpu::GPUModuleOp>();
  made->gpu =
      lowering::translateForGpu(*modules.begin(), made->llvmContext, chip);
  if (made->gpu)
    made->kernels = made->compile(/*mayLeaveOut=*/false);
  if (!made->kernels) {
    ADD_FAILURE() << "expected kernels of the emulator";
    return nullptr;
  }
  return made;
}

unsigned EmulatedOp::count(lowering::GpuSynchronization kind) const {
  return lowering::countSynchronizations(*gpu, kind);
}

void EmulatedOp::leaveOut(lowering::WaitingInstruction instruction) {
  if (!mayLeaveOut)
    kernels = compile(/*mayLeaveOut=*/true);
  mayLeaveOut = true;
  if (kernels)
    kernels->leaveOut(instruction);
}

std::unique_ptr<EmulatedKernels> EmulatedOp::compile(bool mayLeaveOut) {
  // Such code runs a few times: most time would be spent on optimizing it.
  return EmulatedKernels::compile(UnknownLoc::get(&context), *gpu,
                                  {/*checks=*/true, mayLeaveOut}, "native",
                                  llvm::CodeGenOptLevel::None);
}

std::vector<std::string> EmulatedOp::run(const std::vector<char *> &buffers,
                                         std::optional<uint64_t> seed) {
  simt::Emulator emulator;
  std::vector<TensorBytes> temporaries;
  for (int64_t bytes : plan.temporaries)
    temporaries.emplace_back("f32", bytes / 4);
  std::vector<char *> added;
  auto add = [&](std::string name, char *data, int64_t bytes, bool written) {
    if (llvm::is_contained(added, data))
      return; // in place
    added.push_back(data);
    emulator.addBuffer(std::move(name), data, bytes, written);
  };
  for (auto [i, tensor] : llvm::enumerate(operands))
    add("operand " + std::to_string(i), buffers[i], tensor.bytes(), true);
  for (auto [i, tensor] : llvm::enumerate(results))
    add("result " + std::to_string(i), buffers[operands.size() + i],
        tensor.bytes(), accumulate[i]);
  for (auto [i, memory] : llvm::enumerate(temporaries))
    add("temporary " + std::to_string(i), memory.data(), memory.bytes(), false);
  launches.clear();
  for (auto [call, planned] : llvm::zip_equal(plan.calls, planned)) {
    std::vector<void *> pointers;
    for (lowering::KernelArgument argument : call.arguments) {
      using Kind = lowering::KernelArgument::Kind;
      pointers.push_back(argument.kind == Kind::Temporary
                             ? temporaries[argument.index].data()
                         : argument.kind == Kind::Scalar
                             ? std::bit_cast<char *>(uintptr_t(argument.index))
                         : argument.kind == Kind::Result
                             ? buffers[operands.size() + argument.index]
                             : buffers[argument.index]);
    }
    std::vector<void *> arguments;
    for (void *&pointer : pointers)
      arguments.push_back(&pointer);
    const RotaSimtKernel *kernel = kernels->find(call.symbol);
    if (!kernel)
      return {"no kernel"};
    lowering::LaunchShape shape = library->getLaunchShape(call.symbol);
    simt::Launch launch;
    launch.grid = {uint32_t(shape.grid[0]), uint32_t(shape.grid[1]),
                   uint32_t(shape.grid[2])};
    launch.block = {uint32_t(shape.block), 1, 1};
    launch.sharedBytes = shape.sharedBytesOf(hasWarpgroups);
    launch.arguments = arguments.data();
    launch.seed = seed;
    launches.push_back({planned.kernel, {}, planned.bytes});
    launch.moved = &launches.back().moved;
    std::vector<std::string> reports = emulator.launch(*kernel, launch);
    if (!reports.empty())
      return reports;
  }
  return {};
}

} // namespace rota::test
