// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/experts/GpuTileProduct.h"
#include "lowering/gpu/experts/GpuMatrixProduct.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {

using Values = GpuTileProduct::Values;

void GpuTileProduct::storeAt(Value sum, Memory to, Value at, bool accumulate) {
  auto type = dyn_cast<VectorType>(sum.getType());
  if (accumulate)
    sum = k.addf(
        type ? k.loadVector(to, at, type.getDimSize(0)) : k.load(to, at), sum);
  k.store(sum, to, at);
}

namespace {

/// 16 x 16 threads with 4 x 4 elements each; slices lie as [16][64].
class F32Product : public GpuTileProduct {
public:
  static constexpr int64_t kTile = 64;

  F32Product(GpuBuilder &k, bool isWide)
      : GpuTileProduct(k), isWide(isWide), thread(k.widen(k.thread())),
        down(k.mul(k.div(thread, kAcross), kVector)),
        across(k.mul(k.rem(thread, kAcross), kVector)),
        slices{allocate(), allocate()} {}

  Values multiply(const TileSide &left, const TileSide &right, Value depths,
                  ValueRange sums) override;
  Values zeros() override { return Values(kVector, k.splat(0.0f, kVector)); }
  void store(ValueRange sums, const TilePlace &place, bool accumulate) override;

private:
  static constexpr int64_t kDepth = 16, kVector = 4, kAcross = 16;
  static constexpr int64_t kStride = kTile + kVector;
  Memory allocate() {
    return k.allocateShared(kDepth * kStride, k.ops().getF32Type());
  }

  /// Row and first element of this thread's vector of a slice.
  std::pair<Value, Value> placeInSlice(const TileSide &side);
  /// The thread's vector of the slice that begins at `from`, of depths below
  /// `end`; zeros elsewhere.
  Value fetch(const TileSide &side, Value from, Value end);
  Value load(const TileSide &side, Value own, Value inner, Value end);
  void put(const TileSide &side, Value value, bool isLeft);
  Values multiplySlices(ValueRange sums);

  bool isWide;                // no vector lies across an end
  Value thread, down, across; // i64
  Memory slices[2];
};

std::pair<Value, Value> F32Product::placeInSlice(const TileSide &side) {
  // Neighbouring threads have neighbouring vectors.
  int64_t perRow = (side.depthLast ? kDepth : kTile) / kVector;
  return {k.div(thread, perRow), k.mul(k.rem(thread, perRow), kVector)};
}

Value F32Product::fetch(const TileSide &side, Value from, Value end) {
  auto [row, element] = placeInSlice(side);
  return side.depthLast ? load(side, row, k.add(from, element), end)
                        : load(side, element, k.add(from, row), end);
}

Values F32Product::multiply(const TileSide &left, const TileSide &right,
                            Value depths, ValueRange sums) {
  if (left.rows.base)
    k.barrier();
  // The next slices are on their way during a product.
  Value first = k.i64(0);
  Values carried{fetch(left, first, depths), fetch(right, first, depths)};
  llvm::append_range(carried, sums);
  Values last = k.loop(
      first, depths, kDepth, carried, [&](Value from, ValueRange before) {
        k.barrier();
        put(left, before[0], /*isLeft=*/true);
        put(right, before[1], /*isLeft=*/false);
        k.barrier();
        Value next = k.add(from, kDepth);
        Values after{fetch(left, next, depths), fetch(right, next, depths)};
        llvm::append_range(after, multiplySlices(before.drop_front(2)));
        return after;
      });
  return Values(ArrayRef(last).drop_front(2));
}

Value F32Product::load(const TileSide &side, Value own, Value inner,
                       Value end) {
  auto isInside = [&](Value own, Value inner) {
    Value exists = k.isLess(inner, end);
    return side.count ? k.both(k.isLess(own, side.count), exists) : exists;
  };
  // Numbers of rows that do not exist are not read.
  auto place = [&] {
    Value row = side.depthLast ? own : inner;
    return k.add(k.mul(rowNumber(side.rows, row), side.stride),
                 side.depthLast ? inner : own);
  };
  if (isWide)
    return k.choose(
        isInside(own, inner),
        [&] { return k.loadVector(side.from, place(), kVector); },
        [&] { return k.splat(0.0f, kVector); });
  Values elements;
  for (int64_t e = 0; e < kVector; ++e)
    elements.push_back(k.choose(
        side.depthLast ? isInside(own, k.add(inner, e))
                       : isInside(k.add(own, e), inner),
        [&] { return k.load(side.from, k.add(place(), e)); },
        [&] { return k.f32(0.0f); }));
  auto type = VectorType::get({kVector}, k.ops().getF32Type());
  return vector::FromElementsOp::create(k.ops(), type, elements);
}

void F32Product::put(const TileSide &side, Value value, bool isLeft) {
  Memory slice = slices[isLeft ? 0 : 1];
  auto [row, element] = placeInSlice(side);
  if (!side.depthLast)
    return k.store(value, slice, k.add(k.mul(row, kStride), element));
  for (int64_t e = 0; e < kVector; ++e)
    k.store(k.extract(value, e), slice,
            k.add(k.mul(k.add(element, e), kStride), row));
}

Values F32Product::multiplySlices(ValueRange sums) {
  Memory left = k.offset(slices[0], down), right = k.offset(slices[1], across);
  return k.loop(k.i64(0), k.i64(kDepth), kVector, sums,
                [&](Value first, ValueRange before) {
                  Values after(before);
                  for (int64_t d = 0; d < kVector; ++d) {
                    Value at = k.mul(k.add(first, d), kStride);
                    Value a = k.loadVector(left, at, kVector);
                    Value b = k.loadVector(right, at, kVector);
                    for (int64_t i = 0; i < kVector; ++i)
                      after[i] =
                          k.fma(k.splat(k.extract(a, i), kVector), b, after[i]);
                  }
                  return after;
                });
}

void F32Product::store(ValueRange sums, const TilePlace &place,
                       bool accumulate) {
  Value columns = place.columns ? place.columns : k.i64(kTile);
  for (int64_t i = 0; i < kVector; ++i) {
    Value row = k.add(down, i);
    Value at = k.add(k.mul(rowNumber(place.rows, row), place.stride), across);
    Value exists = k.both(k.isLess(row, place.high),
                          k.isLess(k.sub(place.low, k.i64(1)), row));
    k.when(exists, [&] {
      if (isWide)
        return k.when(k.isLess(across, columns),
                      [&] { storeAt(sums[i], place.to, at, accumulate); });
      for (int64_t e = 0; e < kVector; ++e)
        k.when(k.isLess(k.add(across, e), columns), [&] {
          storeAt(k.extract(sums[i], e), place.to, k.add(at, e), accumulate);
        });
    });
  }
}

/// Whether no vector of `count` elements lies across the end of a row.
bool divides(int64_t count, ArrayRef<int64_t> widths) {
  return llvm::all_of(widths,
                      [&](int64_t width) { return width % count == 0; });
}

} // namespace

bool GpuTileProduct::takesMatrices(Type element, ArrayRef<int64_t> widths) {
  return element.isBF16() && divides(MatrixProduct::kVector, widths);
}

TileShape GpuTileProduct::tileOf(Type element, ArrayRef<int64_t> widths,
                                 int64_t columns, MatrixUnit unit) {
  if (!takesMatrices(element, widths))
    return {F32Product::kTile, F32Product::kTile};
  constexpr int64_t wide = MatrixProduct::kWideTile;
  int64_t beyond = int64_t(llvm::alignTo(columns, wide)) - columns;
  bool isWide = unit == MatrixUnit::Warpgroup && beyond < columns / 8;
  return {MatrixProduct::kTile, isWide ? wide : MatrixProduct::kTile};
}

std::unique_ptr<GpuTileProduct>
GpuTileProduct::make(GpuBuilder &k, Type element, ArrayRef<int64_t> widths,
                     int64_t columns, MatrixUnit unit) {
  // Two blocks share the registers of a multiprocessor, so that none spills.
  TileShape tile = tileOf(element, widths, columns, unit);
  leaveRegistersFor(k, tile.columns <= MatrixProduct::kTile ? 2 : 1);
  if (takesMatrices(element, widths))
    return std::make_unique<MatrixProduct>(k, tile, unit);
  return std::make_unique<F32Product>(k, /*isWide=*/divides(4, widths));
}

} // namespace rota::lowering
