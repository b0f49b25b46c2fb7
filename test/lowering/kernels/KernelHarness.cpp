// SPDX-License-Identifier: Apache-2.0
//
// Kernels linked in memory and called on guarded buffers.
#include "test/lowering/kernels/KernelHarness.h"

#include "runtime/device/cpu/TileProduct.h"
#include "test/runtime/device/cpu/EmulatedTiles.h"

#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"
#include <gtest/gtest.h>

#include <cstring>

using namespace mlir;
using namespace ::rota::lowering;

namespace rota::test {

/// Elements as the kernels see them, between guard bytes.
struct KernelHarness::Buffer {
  static constexpr int64_t kGuard = 256;
  static constexpr unsigned char kGuardByte = 0xA5;

  explicit Buffer(int64_t size)
      : storage(size + 2 * kGuard, kGuardByte), size(size) {
    std::memset(data(), 0xFF, size); // a NaN in every float type
  }
  unsigned char *data() { return storage.data() + kGuard; }
  bool intact() const {
    auto isGuard = [](unsigned char byte) { return byte == kGuardByte; };
    return std::all_of(storage.begin(), storage.begin() + kGuard, isGuard) &&
           std::all_of(storage.end() - kGuard, storage.end(), isGuard);
  }

  std::vector<unsigned char> storage;
  int64_t size;
};

static int64_t byteSize(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor.getNumElements() * tensor.getElementTypeBitWidth() / 8;
}

/// Writes a tensor in the element type of `type`; bf16 elements must be exact.
static void write(const interpreter::Tensor &tensor, Type type,
                  unsigned char *data) {
  Type element = cast<RankedTensorType>(type).getElementType();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    float number = tensor[i];
    int32_t integer = tensor[i];
    if (element.isBF16())
      std::memcpy(data + 2 * i, reinterpret_cast<char *>(&number) + 2, 2);
    else
      std::memcpy(data + 4 * i,
                  element.isInteger() ? static_cast<void *>(&integer)
                                      : static_cast<void *>(&number),
                  4);
  }
}

static interpreter::Tensor read(Type type, const unsigned char *data) {
  auto tensorType = cast<RankedTensorType>(type);
  Type element = tensorType.getElementType();
  interpreter::Tensor tensor(tensorType.getShape());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    float number = 0;
    int32_t integer = 0;
    if (element.isBF16())
      std::memcpy(reinterpret_cast<char *>(&number) + 2, data + 2 * i, 2);
    else
      std::memcpy(element.isInteger() ? static_cast<void *>(&integer)
                                      : static_cast<void *>(&number),
                  data + 4 * i, 4);
    tensor[i] = element.isInteger() ? integer : number;
  }
  return tensor;
}

std::unique_ptr<bench::LinkedCode> linkKernels(KernelLibrary &library,
                                               const TargetOptions &options) {
  ModuleOp module = library.getModule();
  auto machine = createTargetMachine(module.getLoc(), options);
  if (failed(machine) || failed(lowerToLLVMDialect(module)))
    return nullptr;
  auto object = emitObject(module, **machine);
  if (failed(object))
    return nullptr;
  auto code = bench::LinkedCode::link(*object);
  EXPECT_TRUE(code);
  return code;
}

std::vector<std::string> otherProcessors() {
  std::vector<std::string> names;
  if (llvm::Triple(llvm::sys::getDefaultTargetTriple()).isX86()) {
    names.push_back("x86-64");
    auto features = llvm::sys::getHostCPUFeatures();
    if (features.lookup("avx2") && features.lookup("fma"))
      names.push_back("x86-64-v3");
  }
  return names;
}

NativeKernel lookupKernel(bench::LinkedCode &code, StringRef symbol) {
  auto kernel = code.find<NativeKernel>(symbol);
  EXPECT_TRUE(kernel);
  return kernel;
}

/// In plain C++ for emulated kinds of products.
static const RotaTiles *tilesFor(std::optional<PairProducts> pairs) {
  return pairs ? &kTilesOf<panelKernelsOfTiles> : rotaTiles();
}

std::unique_ptr<KernelHarness>
KernelHarness::compile(func::FuncOp function, ArrayRef<bool> accumulate,
                       const TargetOptions &options,
                       std::optional<PairProducts> pairs) {
  auto machine = createTargetMachine(function.getLoc(), options);
  if (failed(machine))
    return nullptr;
  std::unique_ptr<KernelHarness> harness(new KernelHarness());
  harness->function = function;
  harness->tiles = tilesFor(pairs);
  KernelLibrary library(
      function.getContext(),
      pairs ? emulatedTarget(*pairs)
            : vectorTarget(vectorBits(**machine), pairProducts(**machine)));
  Block &body = function.getBody().front();
  for (Operation &op : body.without_terminator()) {
    if (isa<mlir::rota::ReshapeOp>(op))
      continue;
    SmallVector<bool> flags(op.getNumResults(), false);
    for (OpOperand &use : body.getTerminator()->getOpOperands())
      if (use.get().getDefiningOp() == &op && !accumulate.empty())
        flags[cast<OpResult>(use.get()).getResultNumber()] =
            accumulate[use.getOperandNumber()];
    auto plan = planKernels(&op, flags, library);
    if (failed(plan))
      return nullptr;
    harness->plans.push_back({&op, *plan});
  }
  harness->code = linkKernels(library, options);
  return harness->code ? std::move(harness) : nullptr;
}

KernelHarness::~KernelHarness() = default;

int64_t KernelHarness::countCalls() const {
  int64_t count = 0;
  for (auto &[op, plan] : plans)
    count += plan.calls.size();
  return count;
}

/// One run: where every value of the function lives.
class KernelHarness::Execution {
public:
  Execution(KernelHarness &harness, int64_t pieces, bool inPlace)
      : harness(harness), pieces(pieces), inPlace(inPlace) {}

  unsigned char *allocate(int64_t size) {
    return buffers.emplace_back(std::make_unique<Buffer>(size))->data();
  }

  void place(Value value, const Tensor *tensor) {
    places[value] = allocate(byteSize(value.getType()));
    if (tensor)
      write(*tensor, value.getType(), places[value]);
  }

  Tensor get(Value value) {
    return read(value.getType(), places.lookup(value));
  }

  bool has(Value value) const { return places.contains(value); }

  void view(mlir::rota::ReshapeOp op) {
    places[op.getResult()] = places.lookup(op.getInput());
  }

  void run(Operation *op, const KernelPlan &plan) {
    if (inPlace)
      for (auto [operand, result] :
           cast<mlir::rota::TaskOpInterface>(op).getInPlacePairs())
        if (!has(op->getResult(result)) &&
            op->getOperand(operand).hasOneUse() &&
            taken.insert(op->getOperand(operand)).second)
          places[op->getResult(result)] =
              places.lookup(op->getOperand(operand));
    for (Value result : op->getResults())
      if (!has(result))
        place(result, nullptr);
    SmallVector<unsigned char *> temporaries;
    for (int64_t size : plan.temporaries)
      temporaries.push_back(allocate(size));
    for (const KernelCall &call : plan.calls)
      runCall(op, call, temporaries);
    for (auto &buffer : buffers)
      EXPECT_TRUE(buffer->intact())
          << op->getName().getStringRef().str() << " writes beyond a buffer";
  }

private:
  void runCall(Operation *op, const KernelCall &call,
               ArrayRef<unsigned char *> temporaries) {
    SmallVector<void *> pointers;
    for (const KernelArgument &argument : call.arguments)
      switch (argument.kind) {
      case KernelArgument::Kind::Operand:
        pointers.push_back(places.lookup(op->getOperand(argument.index)));
        break;
      case KernelArgument::Kind::Result:
        pointers.push_back(places.lookup(op->getResult(argument.index)));
        break;
      case KernelArgument::Kind::Temporary:
        pointers.push_back(temporaries[argument.index]);
        break;
      case KernelArgument::Kind::Number: {
        unsigned char *number = allocate(sizeof(int32_t));
        std::memcpy(number, &argument.index, sizeof(int32_t));
        pointers.push_back(number);
        break;
      }
      case KernelArgument::Kind::Tiles:
        pointers.push_back(const_cast<RotaTiles *>(harness.tiles));
        break;
      case KernelArgument::Kind::Scalar:
        llvm_unreachable("kernels of CPUs have none");
      }
    NativeKernel kernel = lookupKernel(*harness.code, call.symbol);
    if (!kernel)
      return;
    int64_t grains = llvm::divideCeil(call.rows, call.grain);
    for (int64_t piece = pieces; piece-- > 0;) {
      int64_t begin = grains * piece / pieces * call.grain;
      int64_t end =
          std::min(call.rows, grains * (piece + 1) / pieces * call.grain);
      if (begin < end)
        kernel(pointers.data(), begin, end);
    }
  }

  KernelHarness &harness;
  int64_t pieces;
  bool inPlace;
  std::vector<std::unique_ptr<Buffer>> buffers;
  llvm::DenseMap<Value, unsigned char *> places;
  llvm::DenseSet<Value> taken;
};

static std::vector<interpreter::Tensor> results(func::FuncOp function,
                                                auto &execution) {
  std::vector<interpreter::Tensor> tensors;
  for (Value value : function.getBody().front().getTerminator()->getOperands())
    tensors.push_back(execution.get(value));
  return tensors;
}

std::vector<interpreter::Tensor> KernelHarness::run(ArrayRef<Tensor> arguments,
                                                    int64_t pieces,
                                                    ArrayRef<Tensor> initial) {
  Execution execution(*this, pieces, /*inPlace=*/false);
  Block &body = function.getBody().front();
  for (auto [value, tensor] : llvm::zip(body.getArguments(), arguments))
    execution.place(value, &tensor);
  for (auto [value, tensor] :
       llvm::zip(body.getTerminator()->getOperands(), initial))
    if (tensor.size() > 0 && !execution.has(value))
      execution.place(value, &tensor);
  auto plan = plans.begin();
  for (Operation &op : body.without_terminator())
    if (auto reshape = dyn_cast<mlir::rota::ReshapeOp>(op))
      execution.view(reshape);
    else
      execution.run(&op, (plan++)->second);
  return results(function, execution);
}

std::vector<interpreter::Tensor>
KernelHarness::runInPlace(ArrayRef<Tensor> arguments) {
  Execution execution(*this, /*pieces=*/1, /*inPlace=*/true);
  Block &body = function.getBody().front();
  for (auto [value, tensor] : llvm::zip(body.getArguments(), arguments))
    execution.place(value, &tensor);
  auto plan = plans.begin();
  for (Operation &op : body.without_terminator())
    if (auto reshape = dyn_cast<mlir::rota::ReshapeOp>(op))
      execution.view(reshape);
    else
      execution.run(&op, (plan++)->second);
  return results(function, execution);
}

} // namespace rota::test
