// SPDX-License-Identifier: Apache-2.0
//
// The frame of GPU kernels and what their threads do together.
#include "lowering/gpu/GpuBuilder.h"
#include "lowering/gpu/GpuEmitters.h"

#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {

/// The address spaces of PTX.
enum AddressSpace : unsigned { kGlobal = 1, kShared = 3 };

int64_t chunkWidth(int64_t columns, int64_t bits) {
  int64_t width = 8 * kAccessBytes / bits;
  while (columns % width != 0)
    width /= 2;
  return width;
}

Memory GpuBuilder::argument(unsigned i, Type element) {
  return {pointers[i], element};
}

Memory GpuBuilder::offset(Memory memory, Value by) {
  return {address(b, memory.base, memory.element, by), memory.element};
}

Value GpuBuilder::thread() {
  return NVVM::ThreadIdXOp::create(b, b.getI32Type());
}
Value GpuBuilder::block() {
  if (ownBlock)
    return ownBlock;
  return NVVM::BlockIdXOp::create(b, b.getI32Type());
}
Value GpuBuilder::widen(Value index) {
  if (index.getType().isInteger(64))
    return index;
  return arith::ExtUIOp::create(b, b.getI64Type(), index);
}
Value GpuBuilder::narrow(Value index) {
  if (index.getType().isInteger(32))
    return index;
  return arith::TruncIOp::create(b, b.getI32Type(), index);
}

void GpuBuilder::each(int64_t count, int64_t threads, Body body) {
  // 64 bits only where they are needed: a division takes four times as long.
  bool fits = llvm::alignTo(count, threads) <=
              uint64_t(std::numeric_limits<int32_t>::max());
  auto index = [&](Value value) { return fits ? value : widen(value); };
  Value number = add(mul(index(block()), threads), index(thread()));
  if (count % threads == 0)
    body(number);
  else
    when(isWithin(number, count), [&] { body(number); });
}

Value GpuBuilder::load(Memory memory, Value index) {
  return loadWide(b, memory.base, memory.element, index);
}

Value GpuBuilder::loadIndex(Memory memory, Value index) {
  return arith::ExtSIOp::create(b, b.getI64Type(), load(memory, index));
}

Value GpuBuilder::loadVector(Memory memory, Value index, int64_t width) {
  return loadWide(b, memory.base, memory.element, index, width, kAccessBytes);
}

void GpuBuilder::store(Value value, Memory memory, Value index) {
  storeRounded(b, value, memory.base, memory.element, index, kAccessBytes);
}

Value GpuBuilder::loadPart(Memory memory, Value index, int64_t count,
                           int64_t width, float filler) {
  if (count == width)
    return loadVector(memory, index, width);
  Value vector = splat(filler, width);
  for (int64_t i = 0; i < count; ++i)
    vector = vector::InsertOp::create(b, load(memory, add(index, i)), vector,
                                      ArrayRef<int64_t>{i});
  return vector;
}

void GpuBuilder::storePart(Value vector, Memory memory, Value index,
                           int64_t count) {
  if (count == cast<VectorType>(vector.getType()).getDimSize(0))
    return store(vector, memory, index);
  for (int64_t i = 0; i < count; ++i)
    store(extract(vector, i), memory, add(index, i));
}

Value GpuBuilder::splat(Value scalar, int64_t width) {
  return lowering::splat(b, scalar, width);
}
Value GpuBuilder::splat(float scalar, int64_t width) {
  return constant(b, scalar, width);
}
Value GpuBuilder::extract(Value vector, int64_t element) {
  return vector::ExtractOp::create(b, vector, ArrayRef<int64_t>{element});
}
Value GpuBuilder::combineElements(
    Value vector, llvm::function_ref<Value(Value, Value)> join) {
  SmallVector<Value> parts;
  int64_t width = cast<VectorType>(vector.getType()).getDimSize(0);
  for (int64_t i = 0; i < width; ++i)
    parts.push_back(extract(vector, i));
  for (; width > 1; width /= 2)
    for (int64_t i = 0; i < width / 2; ++i)
      parts[i] = join(parts[i], parts[i + width / 2]);
  return parts[0];
}

Value GpuBuilder::before(Value end, Value index, Value value, float filler) {
  int64_t width = cast<VectorType>(value.getType()).getDimSize(0);
  auto type = VectorType::get({width}, b.getI32Type());
  auto elements = llvm::to_vector(llvm::seq<int32_t>(0, width));
  Value number = arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, ArrayRef<int32_t>(elements)));
  Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, number,
                                       splat(sub(end, index), width));
  return select(inside, value, splat(filler, width));
}

Value GpuBuilder::largest(Value x, Value y) {
  return arith::MaxNumFOp::create(b, x, y);
}
Value GpuBuilder::exp(Value value) { return math::ExpOp::create(b, value); }

Value dynamicSharedMemory(ImplicitLocOpBuilder &b) {
  constexpr StringRef symbol = "dynamic_shared_memory";
  auto module =
      b.getInsertionBlock()->getParentOp()->getParentOfType<gpu::GPUModuleOp>();
  if (!module.lookupSymbol(symbol)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    // Tiles that hardware writes by itself need as much.
    constexpr uint64_t alignment = 1024;
    LLVM::GlobalOp::create(b, LLVM::LLVMArrayType::get(b.getI8Type(), 0),
                           /*isConstant=*/false, LLVM::Linkage::External,
                           symbol, /*value=*/Attribute(), alignment, kShared);
  }
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kShared);
  return LLVM::AddressOfOp::create(b, pointer, symbol);
}

Memory GpuBuilder::allocateShared(int64_t count, Type element) {
  int64_t size = element.getIntOrFloatBitWidth() / 8;
  sharedBytes = llvm::alignTo(sharedBytes, kAccessBytes);
  Value base =
      address(b, dynamicSharedMemory(b), b.getI8Type(), i64(sharedBytes));
  sharedBytes += count * size;
  return {base, element};
}

void GpuBuilder::barrier() { NVVM::BarrierOp::create(b); }

Value GpuBuilder::exchange(Value value, int64_t distance) {
  constexpr int64_t allLanes = -1, wholeWarp = kWarp - 1;
  return NVVM::ShflOp::create(b, value.getType(), i32(allLanes), value,
                              i32(distance), i32(wholeWarp),
                              NVVM::ShflKind::bfly, /*return_value=*/nullptr);
}

SmallVector<Value> GpuBuilder::combineThreads(ValueRange values,
                                              int64_t threads, Combiner join,
                                              Value turn) {
  SmallVector<Value> mine(values);
  for (int64_t distance = 1; distance < std::min(threads, kWarp);
       distance *= 2) {
    SmallVector<Value> theirs;
    for (Value value : mine)
      theirs.push_back(exchange(value, distance));
    mine = join(mine, theirs);
  }
  if (threads <= kWarp || mine.empty())
    return mine;
  // A number for each warp, which every thread combines in order.
  int64_t warps = threads / kWarp, count = int64_t(mine.size());
  Memory shared =
      allocateShared(count * warps * (turn ? 2 : 1), b.getF32Type());
  if (turn)
    shared = offset(shared, mul(turn, count * warps));
  Value number = thread();
  when(isEqual(rem(number, kWarp), i32(0)), [&] {
    for (auto [i, value] : llvm::enumerate(mine))
      store(value, shared, add(div(number, kWarp), int64_t(i) * warps));
  });
  barrier();
  for (int64_t warp = 0; warp < warps; ++warp) {
    SmallVector<Value> theirs;
    for (int64_t i = 0; i < count; ++i)
      theirs.push_back(load(shared, i32(i * warps + warp)));
    mine = warp == 0 ? theirs : join(mine, theirs);
  }
  return mine;
}

Value GpuBuilder::sumByHalves(Value value, int64_t threads, int64_t across) {
  Memory shared = allocateShared(threads, value.getType());
  Value number = thread();
  auto sum = [&](Value x, Value y) -> Value {
    if (isa<FloatType>(x.getType()))
      return addf(x, y);
    return add(x, y);
  };
  store(value, shared, number);
  for (int64_t half = threads / 2; half >= across; half /= 2) {
    barrier();
    when(isWithin(number, half), [&] {
      Value other = load(shared, add(number, half));
      store(sum(load(shared, number), other), shared, number);
    });
  }
  // A thread reads here what it has written itself.
  return load(shared, number);
}

Value GpuBuilder::sumUpToHere(Value value, int64_t threads) {
  Memory shared = allocateShared(2 * threads, b.getI32Type());
  Value number = thread(), sum = value;
  store(sum, shared, number);
  int64_t turn = 0;
  for (int64_t distance = 1; distance < threads; distance *= 2, turn ^= 1) {
    barrier();
    Memory from = offset(shared, i32(turn * threads));
    Value other = choose(
        isLess(i32(distance - 1), number),
        [&] { return load(from, add(number, -distance)); },
        [&] { return i32(0); });
    sum = add(sum, other);
    store(sum, offset(shared, i32((1 - turn) * threads)), number);
  }
  return sum;
}

void leaveRegistersFor(GpuBuilder &k, int64_t blocks) {
  k.ops().getBlock()->getParentOp()->setAttr(
      NVVM::NVVMDialect::getMinctasmAttrName(),
      k.ops().getI32IntegerAttr(blocks));
}

namespace {
struct FunctionForm {
  unsigned arguments;
  int64_t blocks, threads; // blocks 0: any number
};
} // namespace

/// The shared memory of the function whose code `body` writes.
static int64_t emitFunction(KernelLibrary &library, Location loc,
                            StringRef symbol, const FunctionForm &form,
                            llvm::function_ref<void(GpuBuilder &k)> body) {
  auto kernels = gpuModuleOf(library);
  auto b = ImplicitLocOpBuilder::atBlockEnd(loc, kernels.getBody());
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kGlobal);
  auto type = b.getFunctionType(SmallVector<Type>(form.arguments, pointer), {});
  auto function = gpu::GPUFuncOp::create(b, symbol, type);
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({int32_t(form.threads), 1, 1}));
  if (form.blocks > 0)
    function.setKnownGridSizeAttr(
        b.getDenseI32ArrayAttr({int32_t(form.blocks), 1, 1}));
  b.setInsertionPointToStart(&function.getBody().front());
  GpuBuilder k(b, function.getArguments());
  body(k);
  gpu::ReturnOp::create(b);
  return k.getSharedBytes();
}

/// Shared memory that a block may have: on sm_80, which has the least of the
/// chips that Rota compiles for by default, and on those with warpgroups.
static constexpr int64_t kLeastOfChips = 163 << 10, kOfGroupChips = 227 << 10;

FailureOr<std::string>
emitGpuKernel(KernelLibrary &library, Location loc, StringRef prefix,
              StringRef key, unsigned arguments, int64_t blocks,
              int64_t threads, llvm::function_ref<void(GpuBuilder &k)> body,
              llvm::function_ref<void(GpuBuilder &k)> grouped) {
  if (blocks > std::numeric_limits<int32_t>::max())
    return emitError(loc, "expected at most ")
           << std::numeric_limits<int32_t>::max()
           << " blocks of a GPU's threads, got " << blocks;
  return library.getOrEmit(
      prefix, key, [&](OpBuilder &, StringRef symbol) -> LogicalResult {
        FunctionForm form{arguments, blocks, threads};
        LaunchShape launch{{blocks, 1, 1}, threads};
        launch.sharedBytes = emitFunction(library, loc, symbol, form, body);
        if (grouped)
          launch.ownSharedBytes = emitFunction(
              library, loc, (symbol + kWarpgroupForm).str(), form, grouped);
        auto isWithin = [&](int64_t bytes, int64_t most) -> LogicalResult {
          if (bytes <= most)
            return success();
          return emitError(loc, "expected at most ")
                 << most << " bytes of shared memory for a block, got "
                 << bytes;
        };
        if (failed(isWithin(launch.sharedBytes, kLeastOfChips)) ||
            failed(isWithin(launch.ownSharedBytes, kOfGroupChips)))
          return failure();
        library.setLaunchShape(symbol, launch);
        return success();
      });
}

FailureOr<std::string>
emitEach(KernelLibrary &library, Location loc, StringRef prefix, StringRef key,
         unsigned arguments, int64_t count,
         llvm::function_ref<void(GpuBuilder &k, Value number)> body) {
  return emitGpuKernel(library, loc, prefix, key, arguments,
                       llvm::divideCeil(count, kAloneThreads), kAloneThreads,
                       [&](GpuBuilder &k) {
                         k.each(count, kAloneThreads,
                                [&](Value number) { body(k, number); });
                       });
}

} // namespace rota::lowering
