// SPDX-License-Identifier: Apache-2.0
//
// cp.async, ldmatrix and mma.sync, as all GPUs since sm_80 have them.
#include "lowering/gpu/GpuMatrixCode.h"

#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {

GpuMatrixCode::GpuMatrixCode(GpuBuilder &k, int64_t columns, int64_t threads)
    : k(k), columns(columns), threads(threads), thread(k.thread()),
      warp(k.div(thread, kWarp)), lane(k.rem(thread, kWarp)),
      laneRow(k.div(lane, 4)), laneColumn(k.mul(k.rem(lane, 4), 2)) {}

Value GpuMatrixCode::swizzled(Value row, Value chunk) {
  Value place =
      arith::XOrIOp::create(k.ops(), chunk, k.rem(row, kSwizzledRows));
  return k.add(k.mul(row, columns), k.mul(place, kChunkElements));
}

Value GpuMatrixCode::positionIndex(Value position, int64_t stride,
                                   Value chunk) {
  return k.add(k.mul(k.widen(position), stride),
               k.widen(k.mul(chunk, kChunkElements)));
}

Memory GpuMatrixCode::ownRows(Memory tile) {
  return k.offset(tile, k.mul(warp, kRows * columns));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void GpuMatrixCode::startCopy(HeadRows rows, Value first, int64_t count,
                              int64_t sequence, Memory tile) {
  Value row = k.div(thread, chunks()), chunk = k.rem(thread, chunks());
  Value start = k.add(first, row);
  Memory from = k.offset(rows.memory, positionIndex(start, rows.stride, chunk));
  Memory to = k.offset(tile, swizzled(row, chunk));
  // A step is a multiple of the rows after which the swizzle repeats.
  int64_t step = threads / chunks();
  for (int64_t i = 0; i < count; i += step) {
    Value bytes;
    if (sequence % count != 0)
      bytes = k.select(k.isWithin(k.add(start, i), sequence),
                       k.i32(kAccessBytes), k.i32(0));
    NVVM::CpAsyncOp::create(k.ops(), k.offset(to, k.i32(i * columns)).base,
                            k.offset(from, k.i64(i * rows.stride)).base,
                            uint32_t(kAccessBytes),
                            NVVM::LoadCacheModifierKind::CG, bytes);
  }
}

void GpuMatrixCode::endCopyGroup() {
  NVVM::CpAsyncCommitGroupOp::create(k.ops());
}

void GpuMatrixCode::waitForCopies(int64_t pending) {
  NVVM::CpAsyncWaitGroupOp::create(k.ops(), uint32_t(pending));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

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

GpuMatrixCode::Addresses GpuMatrixCode::addressesOf(Memory tile, Order order) {
  // Lanes 8 m to 8 m + 7 give the rows of matrix m.
  Value matrix = k.div(lane, 8), low = k.rem(matrix, 2);
  Value high = k.div(matrix, 2);
  bool isLeft = order == Order::Left;
  Value row = k.add(k.rem(lane, 8), k.mul(isLeft ? low : high, 8));
  Addresses addresses;
  for (int64_t i = 0; i < int64_t(addresses.size()); ++i)
    addresses[i] =
        k.offset(tile, swizzled(row, k.add(isLeft ? high : low, 2 * i)));
  return addresses;
}

GpuMatrixCode::Fragment GpuMatrixCode::load(const Addresses &tile, int64_t row,
                                            int64_t step, bool transposed) {
  // The swizzle repeats after four steps.
  int64_t count = tile.size();
  int64_t offset = row * columns + step / count * (count * kRows);
  Memory at = k.offset(tile[step % count], k.i32(offset));
  auto layout = transposed ? NVVM::MMALayout::col : NVVM::MMALayout::row;
  auto shape =
      NVVM::LdStMatrixShapeAttr::get(k.ops().getContext(), /*m=*/8, /*n=*/8);
  Value loaded = NVVM::LdMatrixOp::create(
      k.ops(), structOf(k, k.ops().getI32Type()), at.base, /*num=*/4u, layout,
      shape, NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> parts = unpack(k, loaded);
  return {parts[0], parts[1], parts[2], parts[3]};
}

void GpuMatrixCode::multiplyAdd(const Fragment &left, const Fragment &right,
                                int64_t half, Sums sums) {
  Value product = NVVM::MmaOp::create(
      k.ops(), structOf(k, k.ops().getF32Type()), ValueRange(left),
      ValueRange{right[2 * half], right[2 * half + 1]}, ValueRange(sums),
      ArrayRef<int64_t>{16, 8, 16}, std::nullopt, std::nullopt,
      std::array{NVVM::MMATypes::bf16, NVVM::MMATypes::bf16},
      std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  llvm::copy(unpack(k, product), sums.begin());
}

/// vector<2xf32>.
static Value pairOf(GpuBuilder &k, Value low, Value high) {
  auto type = VectorType::get({2}, low.getType());
  return vector::FromElementsOp::create(k.ops(), type, ValueRange{low, high});
}

Value GpuMatrixCode::pack(Value low, Value high) {
  Value rounded = arith::TruncFOp::create(
      k.ops(), VectorType::get({2}, k.ops().getBF16Type()),
      pairOf(k, low, high));
  return LLVM::BitcastOp::create(k.ops(), k.ops().getI32Type(), rounded);
}

void GpuMatrixCode::storeRows(ArrayRef<Value> sums, HeadRows rows, Value first,
                              int64_t sequence, Memory tile) {
  Memory own = ownRows(tile);
  for (int64_t chunk = 0; chunk < chunks(); ++chunk)
    for (int64_t half = 0; half < 2; ++half) {
      Value row = k.add(laneRow, half * kSwizzledRows);
      Value at = k.add(swizzled(row, k.i32(chunk)), laneColumn);
      const Value *pair = &sums[chunk * 4 + half * 2];
      k.store(pairOf(k, pair[0], pair[1]), own, at);
    }
  NVVM::SyncWarpOp::create(k.ops(), k.i32(-1));
  Value chunk = k.rem(lane, chunks());
  Value start = k.add(first, k.mul(warp, kRows));
  for (int64_t i = 0; i < kRows; i += kWarp / chunks()) {
    Value row = k.add(k.div(lane, chunks()), i);
    Value value =
        lowering::load(k.ops(), own.base, own.element, swizzled(row, chunk),
                       kChunkElements, kAccessBytes);
    Value position = k.add(start, row);
    k.when(k.isWithin(position, sequence), [&] {
      k.store(value, rows.memory, positionIndex(position, rows.stride, chunk));
    });
  }
}

} // namespace rota::lowering
