// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/MatrixInstructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {

void startAccess(GpuBuilder &k, Memory from, Memory to, int64_t size,
                 Value condition) {
  Value bytes;
  if (condition)
    bytes = k.select(condition, k.i32(size), k.i32(0));
  auto cache = size == kAccessBytes ? NVVM::LoadCacheModifierKind::CG
                                    : NVVM::LoadCacheModifierKind::CA;
  NVVM::CpAsyncOp::create(k.ops(), to.base, from.base, uint32_t(size), cache,
                          bytes);
}

Value swizzledChunk(GpuBuilder &k, Value row, Value chunk) {
  return arith::XOrIOp::create(k.ops(), chunk, k.rem(row, kSwizzledRows));
}

/// The elements of a struct.
static SmallVector<Value> unpack(GpuBuilder &k, Value value) {
  SmallVector<Value> elements;
  auto type = cast<LLVM::LLVMStructType>(value.getType());
  for (int64_t i = 0; i < int64_t(type.getBody().size()); ++i)
    elements.push_back(LLVM::ExtractValueOp::create(k.ops(), value, i));
  return elements;
}

static Type structOf(GpuBuilder &k, Type element) {
  return LLVM::LLVMStructType::getLiteral(k.ops().getContext(),
                                          SmallVector<Type>(4, element));
}

MatrixFragment loadMatrices(GpuBuilder &k, Memory at, bool transposed) {
  auto layout = transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  auto shape =
      NVVM::LdStMatrixShapeAttr::get(k.ops().getContext(), /*m=*/8, /*n=*/8);
  Value loaded = NVVM::LdMatrixOp::create(
      k.ops(), structOf(k, k.ops().getI32Type()), at.base, /*num=*/4u, layout,
      shape, NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> parts = unpack(k, loaded);
  return {parts[0], parts[1], parts[2], parts[3]};
}

void multiplyAdd(GpuBuilder &k, const MatrixFragment &left,
                 const MatrixFragment &right, MutableArrayRef<Value> sums) {
  for (int64_t half = 0; half < 2; ++half) {
    MutableArrayRef<Value> four = sums.slice(4 * half, 4);
    Value product = NVVM::MmaOp::create(
        k.ops(), structOf(k, k.ops().getF32Type()), ValueRange(left),
        ValueRange{right[2 * half], right[2 * half + 1]}, ValueRange(four),
        ArrayRef<int64_t>{16, 8, 16}, std::nullopt, std::nullopt,
        std::array{NVVM::MMATypes::bf16, NVVM::MMATypes::bf16},
        std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    llvm::copy(unpack(k, product), four.begin());
  }
}

Value pairOf(GpuBuilder &k, Value low, Value high) {
  auto type = VectorType::get({2}, low.getType());
  return vector::FromElementsOp::create(k.ops(), type, ValueRange{low, high});
}

} // namespace rota::lowering
