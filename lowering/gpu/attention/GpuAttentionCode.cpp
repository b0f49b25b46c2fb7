// SPDX-License-Identifier: Apache-2.0
//
// Tiles in shared memory and products in registers. Sizes are constants of the
// emitted code.
#include "lowering/gpu/attention/GpuAttentionCode.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

#include <numbers>

using namespace mlir;

namespace rota::lowering {

using Values = GpuAttentionCode::Values;

LogicalResult checkGpuHeadSize(Operation *op, const AttentionShape &shape) {
  if (shape.largestSize() <= GpuAttentionCode::kMostSize)
    return success();
  return op->emitOpError("expected a head size of at most ")
         << GpuAttentionCode::kMostSize << " on a GPU, got "
         << shape.largestSize();
}

GpuAttentionCode::GpuAttentionCode(GpuBuilder &k, const AttentionShape &shape,
                                   AttentionBlock block)
    : GpuAttentionBlocks(k, shape), blockRows(block), thread(k.thread()),
      down(k.div(thread, kAcross)), across(k.rem(thread, kAcross)) {}

int64_t GpuAttentionCode::padded(int64_t size) {
  return llvm::alignTo(size, kVector);
}

int64_t GpuAttentionCode::vectorsAcross(int64_t size) {
  return llvm::divideCeil(vectors(size), kAcross);
}

int64_t GpuAttentionCode::accessWidth(int64_t size) const {
  return chunkWidth(size, shape.element);
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

Value GpuAttentionCode::index(Value position, int64_t stride, Value column) {
  return k.add(k.mul(k.widen(position), stride), k.widen(column));
}

Value GpuAttentionCode::ownPosition(Value first, int64_t i) {
  return k.add(k.add(first, k.mul(down, rowsDown())), i);
}

Value GpuAttentionCode::otherPosition(Value first, int64_t j) {
  return k.add(k.add(first, across), j * kAcross);
}

Value GpuAttentionCode::inSequence(Value position, int64_t rows) {
  if (shape.sequence % rows == 0)
    return {};
  return k.isWithin(position, shape.sequence);
}

Value GpuAttentionCode::inDocument(Value visible, Value key, Value start) {
  if (!start)
    return visible;
  Value isInside = k.isLess(start, k.add(key, 1));
  return visible ? k.both(visible, isInside) : isInside;
}

Value GpuAttentionCode::sees(Value query, Value key, Value start) {
  Value visible = inDocument(walk.sees(query, key), key, start);
  Value present = hidesBeyond() ? Value() : inSequence(key, blockRows.other);
  return visible && present ? k.both(visible, present)
                            : (visible ? visible : present);
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

float GpuAttentionCode::productScale() const {
  return shape.softCap != 0.0f ? shape.scale / shape.softCap
                               : shape.scale * std::numbers::log2e_v<float>;
}

GpuAttentionCode::Score GpuAttentionCode::scoreOf(Value product) {
  if (shape.softCap == 0.0f)
    return {product, {}};
  Value bent = k.tanh(product);
  Value unit = k.f32(shape.softCap * std::numbers::log2e_v<float>);
  return {k.mulf(bent, unit), k.subf(k.f32(1.0f), k.mulf(bent, bent))};
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

SharedTile GpuAttentionCode::allocateRows(int64_t rows, int64_t size) {
  int64_t whole = padded(size);
  int64_t stride = vectors(size) % 2 == 1 ? whole : whole + kVector;
  SharedTile tile{k.allocateShared(rows * stride, k.ops().getF32Type()), rows,
                  stride, size};
  // Products read whole vectors. No put() writes the columns of padding.
  if (whole != size)
    k.when(k.isWithin(thread, rows), [&] {
      for (int64_t d = size; d < whole; ++d)
        k.store(k.f32(0.0f), tile.memory, k.add(k.mul(thread, stride), d));
    });
  return tile;
}

SharedTile GpuAttentionCode::allocateWeights() {
  int64_t stride = blockRows.other + kVector;
  return {k.allocateShared(blockRows.own * stride, k.ops().getF32Type()),
          blockRows.own, stride, blockRows.other};
}

GpuAttentionCode::Access GpuAttentionCode::accessOf(int64_t i, int64_t size) {
  int64_t width = accessWidth(size), chunks = size / width;
  Value number = thread;
  int64_t rows = 0;
  if (kThreads % chunks == 0)
    rows = i * (kThreads / chunks);
  else
    number = k.add(thread, i * kThreads);
  return {k.add(k.div(number, chunks), rows),
          k.mul(k.rem(number, chunks), width)};
}

Values GpuAttentionCode::fetch(StridedRows rows, Value first, int64_t count,
                               float factor) {
  int64_t width = accessWidth(rows.size), items = count * (rows.size / width);
  bool ragged = items % kThreads != 0 || shape.sequence % count != 0;
  if (!ragged)
    first = k.min(first, k.i32(shape.sequence - count));
  Values values;
  for (int64_t i = 0; i * kThreads < items; ++i) {
    Access access = accessOf(i, rows.size);
    Value position = k.add(first, access.row);
    if (ragged)
      position = k.min(position, k.i32(shape.sequence - 1));
    Value value = k.loadVector(
        rows.memory, index(position, rows.stride, access.column), width);
    if (factor != 1.0f)
      value = k.mulf(value, k.splat(factor, width));
    values.push_back(value);
  }
  return values;
}

void GpuAttentionCode::put(const Values &share, SharedTile tile) {
  int64_t items = tile.rows * (tile.size / accessWidth(tile.size));
  for (auto [i, value] : llvm::enumerate(share)) {
    auto write = [&, i = int64_t(i), value = value] {
      Access access = accessOf(i, tile.size);
      k.store(value, tile.memory,
              k.add(k.mul(access.row, tile.stride), access.column));
    };
    if (int64_t(i + 1) * kThreads <= items)
      write();
    else
      k.when(k.isWithin(thread, items - int64_t(i) * kThreads), write);
  }
}

void GpuAttentionCode::putWeights(const Values &weights, SharedTile tile) {
  Memory rows = ownRows(tile);
  for (int64_t i = 0; i < rowsDown(); ++i)
    for (int64_t j = 0; j < rowsAcross(); ++j)
      k.store(weights[i * rowsAcross() + j], rows,
              k.add(across, i * tile.stride + j * kAcross));
}

Memory GpuAttentionCode::ownRows(SharedTile tile) {
  return k.offset(tile.memory, k.mul(down, rowsDown() * tile.stride));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Values GpuAttentionCode::dot(SharedTile own, SharedTile other) {
  Memory left = ownRows(own);
  Memory right = k.offset(other.memory, k.mul(across, other.stride));
  Values zeros(rowsDown() * rowsAcross(), k.f32(0.0f));
  return k.loop(
      k.i32(0), k.i32(padded(own.size)), kVector, zeros,
      [&](Value d, ValueRange before) {
        Values sums(before), a, b;
        for (int64_t i = 0; i < rowsDown(); ++i)
          a.push_back(k.loadVector(left, k.add(d, i * own.stride), kVector));
        for (int64_t j = 0; j < rowsAcross(); ++j)
          b.push_back(k.loadVector(right, k.add(d, j * kAcross * other.stride),
                                   kVector));
        for (int64_t e = 0; e < kVector; ++e)
          for (int64_t i = 0; i < rowsDown(); ++i)
            for (int64_t j = 0; j < rowsAcross(); ++j) {
              Value &sum = sums[i * rowsAcross() + j];
              sum = k.fma(k.extract(a[i], e), k.extract(b[j], e), sum);
            }
        return sums;
      });
}

Values GpuAttentionCode::accumulate(SharedTile weights, SharedTile other,
                                    ValueRange sums) {
  Memory left = ownRows(weights);
  SmallVector<Memory> columns;
  int64_t count = vectors(other.size), perThread = vectorsAcross(other.size);
  for (int64_t c = 0; c < perThread; ++c) {
    Value vector = k.add(across, c * kAcross);
    // A thread without a vector repeats the last one.
    if ((c + 1) * kAcross > count)
      vector = k.min(vector, k.i32(count - 1));
    columns.push_back(k.offset(other.memory, k.mul(vector, kVector)));
  }
  return k.loop(
      k.i32(0), k.i32(blockRows.other), kVector, sums,
      [&](Value row, ValueRange before) {
        Values after(before), a;
        for (int64_t i = 0; i < rowsDown(); ++i)
          a.push_back(
              k.loadVector(left, k.add(row, i * weights.stride), kVector));
        for (int64_t e = 0; e < kVector; ++e) {
          Value start = k.mul(k.add(row, e), other.stride);
          for (auto [c, memory] : llvm::enumerate(columns)) {
            Value vector = k.loadVector(memory, start, kVector);
            for (int64_t i = 0; i < rowsDown(); ++i) {
              Value &sum = after[i * perThread + c];
              sum = k.fma(k.splat(k.extract(a[i], e), kVector), vector, sum);
            }
          }
        }
        return after;
      });
}

Values GpuAttentionCode::zeroSums(int64_t size) {
  return Values(rowsDown() * vectorsAcross(size), k.splat(0.0f, kVector));
}

Values GpuAttentionCode::loadSums(StridedRows rows, Value first) {
  auto loadColumns = [&](Value position, Value column) -> Value {
    if (rows.size % kVector == 0)
      return k.loadVector(rows.memory, index(position, rows.stride, column),
                          kVector);
    Values elements;
    for (int64_t e = 0; e < kVector; ++e)
      elements.push_back(k.load(
          rows.memory, index(position, rows.stride,
                             k.min(k.add(column, e), k.i32(rows.size - 1)))));
    return vector::FromElementsOp::create(
        k.ops(), VectorType::get({kVector}, elements[0].getType()), elements);
  };
  Values sums;
  Value last = k.i32(vectors(rows.size) - 1);
  for (int64_t i = 0; i < rowsDown(); ++i) {
    Value position = k.min(ownPosition(first, i), k.i32(shape.sequence - 1));
    for (int64_t c = 0; c < vectorsAcross(rows.size); ++c) {
      Value vector = k.min(k.add(across, c * kAcross), last);
      sums.push_back(loadColumns(position, k.mul(vector, kVector)));
    }
  }
  return sums;
}

void GpuAttentionCode::storeRows(ValueRange sums, const Values &factor,
                                 StridedRows rows, Value first) {
  auto when = [&](Value condition, llvm::function_ref<void()> body) {
    if (condition)
      k.when(condition, body);
    else
      body();
  };
  auto storeVector = [&](Value value, Value position, Value column) {
    if (rows.size % kVector == 0) {
      k.store(value, rows.memory, index(position, rows.stride, column));
      return;
    }
    for (int64_t e = 0; e < kVector; ++e) {
      Value at = k.add(column, e);
      k.when(k.isWithin(at, rows.size), [&] {
        k.store(k.extract(value, e), rows.memory,
                index(position, rows.stride, at));
      });
    }
  };
  int64_t count = vectors(rows.size), perThread = vectorsAcross(rows.size);
  for (int64_t i = 0; i < rowsDown(); ++i) {
    Value position = ownPosition(first, i);
    when(inSequence(position, blockRows.own), [&] {
      for (int64_t c = 0; c < perThread; ++c) {
        Value vector = k.add(across, c * kAcross);
        Value present =
            (c + 1) * kAcross > count ? k.isWithin(vector, count) : Value();
        when(present, [&] {
          Value value = scaled(sums[i * perThread + c], factor[i]);
          storeVector(value, position, k.mul(vector, kVector));
        });
      }
    });
  }
}

void GpuAttentionCode::warpBarrier() {
  constexpr int64_t allLanes = -1;
  NVVM::SyncWarpOp::create(k.ops(), k.i32(allLanes));
}

} // namespace rota::lowering
