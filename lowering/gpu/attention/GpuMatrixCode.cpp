// SPDX-License-Identifier: Apache-2.0
//
// cp.async, ldmatrix and mma.sync, as all GPUs since sm_80 have them.
#include "lowering/gpu/attention/GpuMatrixCode.h"

#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <limits>

using namespace mlir;

namespace rota::lowering {

GpuMatrixCode::GpuMatrixCode(GpuBuilder &k, int64_t columns,
                             const MatrixBlock &block)
    : k(k), columns(columns), block(block), thread(k.thread()),
      warp(k.div(thread, kWarp)), lane(k.rem(thread, kWarp)),
      laneRow(k.div(lane, 4)), laneColumn(k.mul(k.rem(lane, 4), 2)),
      firstRow(k.mul(warp, kRows)) {}

Value GpuMatrixCode::swizzled(MatrixTile tile, Value row, Value chunk) {
  return swizzledElement(k, tile, row, chunk, width() > kPanelColumns);
}

Value GpuMatrixCode::positionIndex(Value position, int64_t stride,
                                   Value chunk) {
  return k.add(k.mul(k.widen(position), stride),
               k.widen(k.mul(chunk, kChunkElements)));
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void GpuMatrixCode::whenChunk(Value chunk, int64_t count,
                              llvm::function_ref<void()> body) {
  if (count == threadsOfRow())
    body();
  else
    k.when(k.isWithin(chunk, count), body);
}

void GpuMatrixCode::startCopy(StridedRows rows, Value first, int64_t sequence,
                              MatrixTile tile) {
  int64_t across = threadsOfRow(), down = block.threads() / across;
  int64_t count = tile.rows;
  Value row = k.div(thread, across), chunk = k.rem(thread, across);
  Value start = k.add(first, row);
  Memory from = k.offset(rows.memory, positionIndex(start, rows.stride, chunk));
  Memory to = k.offset(tile.memory, swizzled(tile, row, chunk));
  Value inRow;
  if (chunks() < 2 * steps())
    inRow = k.isWithin(chunk, chunks());
  whenChunk(chunk, 2 * steps(), [&] {
    // `down` is a multiple of the rows after which the swizzle repeats.
    for (int64_t i = 0; i < count; i += down) {
      Value condition = inRow;
      if (sequence % count != 0) {
        condition = k.isWithin(k.add(start, i), sequence);
        condition = inRow ? k.both(condition, inRow) : condition;
      }
      startAccess(k, k.offset(from, k.i64(i * rows.stride)),
                  k.offset(to, k.i32(i * kPanelColumns)), kAccessBytes,
                  condition);
    }
  });
}

void GpuMatrixCode::startLineCopy(Memory line, Value first, int64_t count,
                                  int64_t sequence, Memory to) {
  k.when(k.isWithin(thread, count), [&] {
    Value position = k.add(first, thread), condition;
    if (sequence % count != 0)
      condition = k.isWithin(position, sequence);
    startAccess(k, k.offset(line, k.widen(position)), k.offset(to, thread),
                sizeof(float), condition);
  });
}

void GpuMatrixCode::endCopyGroup() {
  NVVM::CpAsyncCommitGroupOp::create(k.ops());
}

void GpuMatrixCode::waitForCopies(int64_t pending) {
  NVVM::CpAsyncWaitGroupOp::create(k.ops(), uint32_t(pending));
  if (block.unit == MatrixUnit::Warpgroup)
    showWarpgroups(k);
}

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

GpuMatrixCode::Addresses
GpuMatrixCode::addressesOf(MatrixTile tile, Order order, Value firstRow) {
  // Lanes 8 m to 8 m + 7 give the rows of matrix m.
  Value matrix = k.div(lane, 8), low = k.rem(matrix, 2);
  Value high = k.div(matrix, 2);
  bool isLeft = order == Order::Left;
  Value row = k.add(k.rem(lane, 8), k.mul(isLeft ? low : high, 8));
  if (firstRow)
    row = k.add(row, firstRow);
  Addresses addresses;
  addresses.panel = tile.rows * kPanelColumns;
  for (auto [i, step] : llvm::enumerate(addresses.steps))
    step = k.offset(
        tile.memory,
        swizzled(tile, row, k.add(isLeft ? high : low, int64_t(2 * i))));
  return addresses;
}

GpuMatrixCode::Fragment GpuMatrixCode::load(const Addresses &tile, int64_t row,
                                            int64_t step, bool transposed) {
  int64_t count = tile.steps.size();
  int64_t offset = row * kPanelColumns + step / count * tile.panel;
  Memory at = k.offset(tile.steps[step % count], k.i32(offset));
  return loadMatrices(k, at, transposed);
}

Value GpuMatrixCode::pack(Value low, Value high) {
  Value rounded = arith::TruncFOp::create(
      k.ops(), VectorType::get({2}, k.ops().getBF16Type()),
      pairOf(k, low, high));
  return LLVM::BitcastOp::create(k.ops(), k.ops().getI32Type(), rounded);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

GpuMatrixCode::Values GpuMatrixCode::zeroSums() {
  return Values(sumsAt(steps(), 0), k.f32(0.0f));
}

std::vector<GpuMatrixCode> GpuMatrixCode::parts() const {
  if (block.unit == MatrixUnit::Warp)
    return {*this};
  std::vector<GpuMatrixCode> all;
  for (int64_t i = 0; i < block.fragments; ++i) {
    GpuMatrixCode part = *this;
    part.block.fragments = 1;
    part.partRow = rowAfterFirst(i * kRows);
    part.firstRow = k.add(firstRow, part.partRow);
    all.push_back(std::move(part));
  }
  return all;
}

GpuMatrixCode::Started GpuMatrixCode::startDot(MatrixTile own,
                                               MatrixTile tile) {
  int64_t number = (*started)++;
  return {block.unit == MatrixUnit::Warp ? dotOfWarps(own, tile)
                                         : startDotOfGroup(own, tile),
          number};
}

GpuMatrixCode::Started GpuMatrixCode::startAccumulate(ArrayRef<Value> weights,
                                                      MatrixTile tile,
                                                      Values sums) {
  if (block.unit == MatrixUnit::Warp)
    accumulateOfWarps(weights, tile, sums);
  else
    startAccumulateOfGroup(weights, tile, sums);
  return {std::move(sums), (*started)++};
}

GpuMatrixCode::Values GpuMatrixCode::finish(Started product) {
  if (block.unit == MatrixUnit::Warpgroup)
    waitForWarpgroup(k, *started - 1 - product.number, product.sums);
  return std::move(product.sums);
}

GpuMatrixCode::Values GpuMatrixCode::finishAll(ArrayRef<Started> products) {
  Values all;
  for (const Started &product : products)
    all.append(product.sums);
  if (block.unit == MatrixUnit::Warpgroup)
    waitForWarpgroup(k, /*pending=*/0, all);
  return all;
}

GpuMatrixCode::Values GpuMatrixCode::dotOfWarps(MatrixTile own,
                                                MatrixTile tile) {
  Addresses left = addressesOf(own, Order::Left, firstRow);
  Addresses right = addressesOf(tile, Order::Right);
  Values sums(sumsAt(tile.rows / kRows, 0), k.f32(0.0f));
  MutableArrayRef<Value> all(sums);
  for (int64_t step = 0; step < steps(); ++step) {
    SmallVector<Fragment> owned;
    for (int64_t i = 0; i < block.fragments; ++i)
      owned.push_back(load(left, rowAfterFirst(i * kRows), step));
    for (int64_t n = 0; n < tile.rows / kRows; ++n) {
      Fragment others = load(right, n * kRows, step);
      for (int64_t i = 0; i < block.fragments; ++i)
        multiplyAdd(k, owned[i], others,
                    all.slice(sumsAt(n, i), kFragmentSums));
    }
  }
  return sums;
}

SmallVector<GpuMatrixCode::Fragment>
GpuMatrixCode::leftOf(ArrayRef<Value> weights, int64_t step) {
  SmallVector<Fragment> left;
  for (int64_t i = 0; i < block.fragments; ++i) {
    // The sums of a product are a left matrix as they lie.
    ArrayRef<Value> w = weights.slice(sumsAt(step, i), kFragmentSums);
    left.push_back({pack(w[0], w[1]), pack(w[2], w[3]), pack(w[4], w[5]),
                    pack(w[6], w[7])});
  }
  return left;
}

void GpuMatrixCode::accumulateOfWarps(ArrayRef<Value> weights, MatrixTile tile,
                                      Values &sums) {
  Addresses addresses = addressesOf(tile, Order::Left);
  MutableArrayRef<Value> all(sums);
  for (int64_t n = 0; n < tile.rows / kRows; ++n) {
    SmallVector<Fragment> left = leftOf(weights, n);
    for (int64_t step = 0; step < steps(); ++step) {
      Fragment right = load(addresses, n * kRows, step, /*transposed=*/true);
      for (int64_t i = 0; i < block.fragments; ++i)
        multiplyAdd(k, left[i], right,
                    all.slice(sumsAt(step, i), kFragmentSums));
    }
  }
}

//===----------------------------------------------------------------------===//
// Products of warpgroups
//===----------------------------------------------------------------------===//

Value GpuMatrixCode::groupRow() {
  if (block.warps == kGroupWarps)
    return {};
  return k.mul(groupOfThread(k), kGroupRows);
}

GpuMatrixCode::Values GpuMatrixCode::startDotOfGroup(MatrixTile own,
                                                     MatrixTile tile) {
  Value left = describeTile(k, own, groupRow()), right = describeTile(k, tile);
  WarpgroupSums product;
  for (int64_t column = 0; column < steps() * kRows; column += kRows)
    product.steps.push_back({{left},
                             right,
                             own.offsetOf(partRow, column),
                             tile.offsetOf(0, column)});
  startOfWarpgroup(k, product, tile.rows, {});
  return product.sums;
}

void GpuMatrixCode::startAccumulateOfGroup(ArrayRef<Value> weights,
                                           MatrixTile tile, Values &sums) {
  Value right = describeTile(k, tile);
  WarpgroupSums product;
  product.sums = std::move(sums);
  for (int64_t n = 0; n < tile.rows / kRows; ++n)
    product.steps.push_back({Values(ArrayRef(leftOf(weights, n).front())),
                             right, 0, tile.offsetOf(n * kRows, 0)});
  startOfWarpgroup(k, product, steps() * kRows, {.left = false, .right = true});
  sums = std::move(product.sums);
}

void GpuMatrixCode::mask(Values &scores, Value ahead, Queries queries,
                         const mlir::rota::AttentionMask &mask, Value keys) {
  Value lowest = k.f32(-std::numeric_limits<float>::infinity());
  bool areRows = queries == Queries::Rows;
  int64_t width = mask.before + mask.after + 1;
  for (auto [i, score] : llvm::enumerate(scores)) {
    // The element's row and column are distance - column apart.
    Value row = k.add(ahead, rowInBlock(rowOf(i)));
    Value distance = k.sub(row, laneColumn);
    int64_t column = columnOf(i);
    Value sees;
    if (mask.limitsBefore()) {
      int64_t reach =
          areRows ? mask.after + mask.offset : mask.before - mask.offset;
      sees = k.isWithin(k.add(distance, reach - column), width);
    } else if (mask.limitsAfter()) {
      sees = areRows ? k.isLess(k.i32(column - 1), distance)
                     : k.isLess(distance, k.i32(column + 1));
    }
    if (keys) {
      Value exists = k.isLess(k.add(laneColumn, column), keys);
      sees = sees ? k.both(sees, exists) : exists;
    }
    if (sees)
      score = k.select(sees, score, lowest);
  }
}

void GpuMatrixCode::eachPair(
    Value first,
    llvm::function_ref<void(int64_t i, Value position, Value column)> body) {
  for (int64_t i = 0; i < sumsAt(steps(), 0); i += 2) {
    if (columnOf(i) / kChunkElements >= chunks())
      continue;
    Value position = k.add(first, rowInBlock(rowOf(i)));
    Value column = k.add(laneColumn, columnOf(i));
    body(i, position, column);
  }
}

GpuMatrixCode::Values GpuMatrixCode::loadSums(StridedRows rows, Value first,
                                              int64_t sequence) {
  Values sums = zeroSums();
  eachPair(first, [&](int64_t i, Value position, Value column) {
    Value row = k.min(position, k.i32(sequence - 1));
    Value pair = k.loadVector(
        rows.memory, k.add(k.mul(k.widen(row), rows.stride), k.widen(column)),
        2);
    sums[i] = k.extract(pair, 0);
    sums[i + 1] = k.extract(pair, 1);
  });
  return sums;
}

void GpuMatrixCode::storeRows(ArrayRef<Value> sums, StridedRows rows,
                              Value first, int64_t sequence, MatrixTile tile) {
  if (rows.memory.element.isF32()) {
    eachPair(first, [&](int64_t i, Value position, Value column) {
      Value at = k.add(k.mul(k.widen(position), rows.stride), k.widen(column));
      k.when(k.isWithin(position, sequence), [&] {
        k.store(pairOf(k, sums[i], sums[i + 1]), rows.memory, at);
      });
    });
    return;
  }
  for (int64_t i = 0; i < int64_t(sums.size()); i += 2) {
    int64_t chunk = columnOf(i) / kChunkElements;
    if (chunk >= chunks())
      continue;
    Value at =
        k.add(swizzled(tile, rowInBlock(rowOf(i)), k.i32(chunk)), laneColumn);
    k.store(pairOf(k, sums[i], sums[i + 1]), tile.memory, at);
  }
  NVVM::SyncWarpOp::create(k.ops(), k.i32(-1));
  int64_t across = threadsOfRow(), down = kWarp / across;
  Value chunk = k.rem(lane, across);
  Value start = k.add(firstRow, k.div(lane, across));
  whenChunk(chunk, chunks(), [&] {
    for (int64_t i = 0; i < block.fragments * kRows; i += down) {
      Value row = k.add(start, rowAfterFirst(i));
      Value value = lowering::load(
          k.ops(), tile.memory.base, tile.memory.element,
          swizzled(tile, row, chunk), kChunkElements, kAccessBytes);
      Value position = k.add(first, row);
      k.when(k.isWithin(position, sequence), [&] {
        k.store(value, rows.memory,
                positionIndex(position, rows.stride, chunk));
      });
    }
  });
}

} // namespace rota::lowering
