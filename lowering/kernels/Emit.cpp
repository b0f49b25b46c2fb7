// SPDX-License-Identifier: Apache-2.0
//
// The frame of kernel functions and their memory accesses, as LLVM pointers and
// loads between arith, scf and vector ops.
#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {

void emitKernelFunction(
    OpBuilder &builder, StringRef symbol, unsigned count,
    llvm::function_ref<void(ImplicitLocOpBuilder &, ValueRange, Value, Value)>
        body) {
  OpBuilder::InsertionGuard guard(builder);
  ImplicitLocOpBuilder b(builder.getUnknownLoc(), builder);
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  auto type = b.getFunctionType({pointer, b.getI64Type(), b.getI64Type()}, {});
  auto function = func::FuncOp::create(b, symbol, type);
  Block *block = function.addEntryBlock();
  b.setInsertionPointToStart(block);
  SmallVector<Value> pointers;
  for (unsigned i = 0; i < count; ++i)
    pointers.push_back(
        load(b, block->getArgument(0), pointer, constant(b, int64_t(i))));
  body(b, pointers, block->getArgument(1), block->getArgument(2));
  b.setInsertionPointToEnd(block);
  func::ReturnOp::create(b);
}

Value constant(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, value, 64);
}

Value constant(ImplicitLocOpBuilder &b, float value, int64_t width) {
  TypedAttr attr = b.getF32FloatAttr(value);
  if (width > 0)
    attr = DenseElementsAttr::get(VectorType::get({width}, b.getF32Type()),
                                  Attribute(attr));
  return arith::ConstantOp::create(b, attr);
}

Value stackArray(ImplicitLocOpBuilder &b, Type element, int64_t elements) {
  constexpr unsigned cacheLine = 64;
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  return LLVM::AllocaOp::create(b, pointer, element, constant(b, elements),
                                cacheLine);
}

Value address(ImplicitLocOpBuilder &b, Value pointer, Type element,
              Value index) {
  return LLVM::GEPOp::create(b, pointer.getType(), element, pointer,
                             ValueRange{index});
}

/// Bytes that the address of a value of `type` is a multiple of. Rows begin
/// anywhere, unless the caller knows more.
static unsigned alignmentOf(Type type, int64_t most) {
  if (isa<LLVM::LLVMPointerType>(type))
    return 8;
  int64_t bytes = bytesOf(getElementTypeOrSelf(type));
  if (auto vector = dyn_cast<VectorType>(type))
    bytes = std::max(bytes, std::min(most, bytes * vector.getNumElements()));
  return bytes;
}

Value load(ImplicitLocOpBuilder &b, Value pointer, Type element, Value index,
           int64_t width, int64_t alignment) {
  Type type = width > 0 ? VectorType::get({width}, element) : element;
  return LLVM::LoadOp::create(b, type, address(b, pointer, element, index),
                              alignmentOf(type, alignment));
}

void store(ImplicitLocOpBuilder &b, Value value, Value pointer, Value index,
           int64_t alignment) {
  Type element = getElementTypeOrSelf(value.getType());
  LLVM::StoreOp::create(b, value, address(b, pointer, element, index),
                        alignmentOf(value.getType(), alignment));
}

/// `type`, a scalar or vector, with other elements.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

Value loadWide(ImplicitLocOpBuilder &b, Value pointer, Type element,
               Value index, int64_t width, int64_t alignment) {
  Value value = load(b, pointer, element, index, width, alignment);
  if (!element.isBF16())
    return value;
  return arith::ExtFOp::create(b, withElement(value.getType(), b.getF32Type()),
                               value);
}

void storeRounded(ImplicitLocOpBuilder &b, Value value, Value pointer,
                  Type element, Value index, int64_t alignment) {
  if (element.isBF16() && getElementTypeOrSelf(value.getType()).isF32())
    value = arith::TruncFOp::create(b, withElement(value.getType(), element),
                                    value);
  store(b, value, pointer, index, alignment);
}

Value splat(ImplicitLocOpBuilder &b, Value scalar, int64_t width) {
  return vector::BroadcastOp::create(
      b, VectorType::get({width}, scalar.getType()), scalar);
}

Value combine(ImplicitLocOpBuilder &b, Value vector,
              llvm::function_ref<Value(Value, Value)> combiner) {
  int64_t width = cast<VectorType>(vector.getType()).getDimSize(0);
  for (; width > 1; width /= 2) {
    auto half = [&](int64_t offset) -> Value {
      return vector::ExtractStridedSliceOp::create(
          b, vector, ArrayRef<int64_t>{offset}, ArrayRef<int64_t>{width / 2},
          ArrayRef<int64_t>{1});
    };
    vector = combiner(half(0), half(width / 2));
  }
  return vector::ExtractOp::create(b, vector, ArrayRef<int64_t>{0});
}

Value sumOf(ImplicitLocOpBuilder &b, Value vector) {
  return combine(b, vector, [&](Value low, Value high) -> Value {
    return arith::AddFOp::create(b, low, high);
  });
}

SmallVector<Value>
emitLoop(ImplicitLocOpBuilder &b, Value begin, Value end, Value step,
         ValueRange carried,
         llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(b, begin, end, step, carried);
  OpBuilder::InsertionGuard guard(b);
  if (carried.empty())
    b.setInsertionPoint(loop.getBody()->getTerminator());
  else
    b.setInsertionPointToEnd(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, next);
  return loop.getResults();
}

SmallVector<Segment> segments(int64_t columns, int64_t width) {
  SmallVector<Segment> result;
  for (int64_t begin = 0; begin < columns; width /= 2)
    if (int64_t count = (columns - begin) / width) {
      result.push_back({begin, count, width});
      begin += count * width;
    }
  return result;
}

} // namespace rota::lowering
