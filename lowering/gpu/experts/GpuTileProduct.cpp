// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/experts/GpuTileProduct.h"
#include "lowering/gpu/MatrixInstructions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {

using Values = GpuTileProduct::Values;

std::pair<Value, Value> GpuTileProduct::placeInSlice(const TileSide &side) {
  // Neighbouring threads have neighbouring vectors.
  int64_t perRow = (side.depthLast ? depth : kTile) / vector;
  return {k.div(thread, perRow), k.mul(k.rem(thread, perRow), vector)};
}

Value GpuTileProduct::fetch(const TileSide &side, Value from, Value end) {
  auto [row, element] = placeInSlice(side);
  return side.depthLast ? load(side, row, k.add(from, element), end)
                        : load(side, element, k.add(from, row), end);
}

Values GpuTileProduct::multiply(const TileSide &left, const TileSide &right,
                                Value first, Value end, ValueRange sums) {
  // The next slices are on their way during a product.
  Values carried{fetch(left, first, end), fetch(right, first, end)};
  llvm::append_range(carried, sums);
  Values last =
      k.loop(first, end, depth, carried, [&](Value from, ValueRange before) {
        k.barrier();
        put(left, before[0], /*isLeft=*/true);
        put(right, before[1], /*isLeft=*/false);
        k.barrier();
        Value next = k.add(from, depth);
        Values after{fetch(left, next, end), fetch(right, next, end)};
        llvm::append_range(after,
                           multiplySlices(left, right, before.drop_front(2)));
        return after;
      });
  return Values(ArrayRef(last).drop_front(2));
}

void GpuTileProduct::whenRow(const TilePlace &place, Value row,
                             llvm::function_ref<void()> body) {
  k.when(k.both(k.isLess(row, place.high),
                k.isLess(k.sub(place.low, k.i64(1)), row)),
         body);
}

void GpuTileProduct::storeAt(Value sum, Memory to, Value at, bool accumulate) {
  auto type = dyn_cast<VectorType>(sum.getType());
  if (accumulate)
    sum = k.addf(
        type ? k.loadVector(to, at, type.getDimSize(0)) : k.load(to, at), sum);
  k.store(sum, to, at);
}

namespace {

//===----------------------------------------------------------------------===//
// f32 units
//===----------------------------------------------------------------------===//

/// 16 x 16 threads with 4 x 4 elements each; slices lie as [16][64].
class F32Product : public GpuTileProduct {
public:
  F32Product(GpuBuilder &k, bool isWide)
      : GpuTileProduct(k, kDepth, kVector), isWide(isWide),
        down(k.mul(k.div(thread, kAcross), kVector)),
        across(k.mul(k.rem(thread, kAcross), kVector)),
        slices{allocate(), allocate()} {}

  Values zeros() override { return Values(kVector, k.splat(0.0f, kVector)); }
  void store(ValueRange sums, const TilePlace &place, bool accumulate) override;

protected:
  Value load(const TileSide &side, Value own, Value inner, Value end) override;
  void put(const TileSide &side, Value value, bool isLeft) override;
  Values multiplySlices(const TileSide &, const TileSide &,
                        ValueRange sums) override;

private:
  static constexpr int64_t kDepth = 16, kVector = 4, kAcross = 16;
  static constexpr int64_t kStride = kTile + kVector;
  Memory allocate() {
    return k.allocateShared(kDepth * kStride, k.ops().getF32Type());
  }

  bool isWide; // no vector lies across an end
  Value down, across;
  Memory slices[2];
};

Value F32Product::load(const TileSide &side, Value own, Value inner,
                       Value end) {
  auto isInside = [&](Value own, Value inner) {
    return k.both(k.isLess(own, side.count), k.isLess(inner, end));
  };
  Value at = indexOf(k, side, own, inner);
  if (isWide)
    return k.choose(
        isInside(own, inner),
        [&] { return k.loadVector(side.from, at, kVector); },
        [&] { return k.splat(0.0f, kVector); });
  Values elements;
  for (int64_t e = 0; e < kVector; ++e)
    elements.push_back(k.choose(
        side.depthLast ? isInside(own, k.add(inner, e))
                       : isInside(k.add(own, e), inner),
        [&] { return k.load(side.from, k.add(at, e)); },
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

Values F32Product::multiplySlices(const TileSide &, const TileSide &,
                                  ValueRange sums) {
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
  for (int64_t i = 0; i < kVector; ++i) {
    Value row = k.add(down, i);
    Value at = k.add(k.mul(row, place.stride), across);
    whenRow(place, row, [&] {
      if (isWide)
        return k.when(k.isLess(across, place.columns),
                      [&] { storeAt(sums[i], place.to, at, accumulate); });
      for (int64_t e = 0; e < kVector; ++e)
        k.when(k.isLess(k.add(across, e), place.columns), [&] {
          storeAt(k.extract(sums[i], e), place.to, k.add(at, e), accumulate);
        });
    });
  }
}

//===----------------------------------------------------------------------===//
// Matrix instructions
//===----------------------------------------------------------------------===//

/// 4 x 2 warps with 16 x 32 elements each. Slices lie as their matrices do, in
/// rows that are padded by 16 bytes, so that neither eight rows nor eight
/// chunks of a row share a bank.
class MatrixProduct : public GpuTileProduct {
public:
  explicit MatrixProduct(GpuBuilder &k)
      : GpuTileProduct(k, kDepth, kVector), lane(k.rem(thread, kWarp)),
        down(k.mul(k.div(thread, kAcross * kWarp), kRows)),
        across(k.mul(k.rem(k.div(thread, kWarp), kAcross), kColumns)),
        slices{allocate(), allocate()} {}

  Values zeros() override { return Values(kColumns / 2, k.f32(0.0f)); }
  void store(ValueRange sums, const TilePlace &place, bool accumulate) override;

protected:
  Value load(const TileSide &side, Value own, Value inner, Value end) override;
  void put(const TileSide &side, Value value, bool isLeft) override;
  Values multiplySlices(const TileSide &left, const TileSide &right,
                        ValueRange sums) override;

private:
  static constexpr int64_t kDepth = 32, kVector = 8, kAcross = 2;
  static constexpr int64_t kRows = 16, kColumns = 32; // of a warp
  static constexpr int64_t kSums = 8; // of 16 columns, in a thread
  Memory allocate() {
    return k.allocateShared(kTile * (kDepth + kVector), k.ops().getBF16Type());
  }
  static int64_t stride(const TileSide &side) {
    return (side.depthLast ? kDepth : kTile) + kVector;
  }
  /// This lane's address of four matrices of 8 x 8, from `own` and 0 on.
  Memory addressOf(const TileSide &side, Value own, bool isLeft);

  Value lane, down, across;
  Memory slices[2];
};

Value MatrixProduct::load(const TileSide &side, Value own, Value inner,
                          Value end) {
  // Two elements are one i32.
  Type i32 = k.ops().getI32Type();
  Value isInside = k.both(k.isLess(own, side.count), k.isLess(inner, end));
  return k.choose(
      isInside,
      [&] {
        Value at = k.div(indexOf(k, side, own, inner), 2);
        return k.loadVector({side.from.base, i32}, at, kVector / 2);
      },
      [&]() -> Value {
        auto type = VectorType::get({kVector / 2}, i32);
        return arith::ConstantOp::create(k.ops(), k.ops().getZeroAttr(type));
      });
}

void MatrixProduct::put(const TileSide &side, Value value, bool isLeft) {
  auto [row, element] = placeInSlice(side);
  Value at = k.add(k.mul(row, stride(side)), element);
  k.store(value, {slices[isLeft ? 0 : 1].base, k.ops().getI32Type()},
          k.div(at, 2));
}

Memory MatrixProduct::addressOf(const TileSide &side, Value own, bool isLeft) {
  // Lanes 8 m to 8 m + 7 give the rows of matrix m. A left fragment has first
  // the matrices of its two halves of rows, a right one those of the depth.
  Value matrix = k.div(lane, 8), line = k.rem(lane, 8);
  Value low = k.mul(k.rem(matrix, 2), 8), high = k.mul(k.div(matrix, 2), 8);
  Value ofOwn = k.add(own, isLeft ? low : high);
  Value ofDepth = isLeft ? high : low;
  Value row = k.add(line, side.depthLast ? ofOwn : ofDepth);
  return k.offset(
      slices[isLeft ? 0 : 1],
      k.add(k.mul(row, stride(side)), side.depthLast ? ofDepth : ofOwn));
}

Values MatrixProduct::multiplySlices(const TileSide &left,
                                     const TileSide &right, ValueRange sums) {
  Values after(sums);
  auto atDepth = [&](const TileSide &side, Memory memory, int64_t d) {
    return k.offset(memory, k.i64(side.depthLast ? d : d * stride(side)));
  };
  Memory a = addressOf(left, down, /*isLeft=*/true);
  for (int64_t d = 0; d < kDepth; d += kRows) {
    MatrixFragment own = loadMatrices(k, atDepth(left, a, d), !left.depthLast);
    for (int64_t column = 0; column < kColumns; column += kRows) {
      Memory b = addressOf(right, k.add(across, column), /*isLeft=*/false);
      multiplyAdd(k, own,
                  loadMatrices(k, atDepth(right, b, d), !right.depthLast),
                  MutableArrayRef<Value>(after).slice(column / 2, kSums));
    }
  }
  return after;
}

void MatrixProduct::store(ValueRange sums, const TilePlace &place,
                          bool accumulate) {
  for (int64_t half = 0; half < 2; ++half) {
    Value row = k.add(k.add(down, k.div(lane, 4)), half * 8);
    whenRow(place, row, [&] {
      for (int64_t part = 0; part < kColumns / 8; ++part) {
        Value column = k.add(k.add(across, k.mul(k.rem(lane, 4), 2)), part * 8);
        int64_t first = part * 4 + half * 2;
        k.when(k.isLess(column, place.columns), [&] {
          storeAt(pairOf(k, sums[first], sums[first + 1]), place.to,
                  k.add(k.mul(row, place.stride), column), accumulate);
        });
      }
    });
  }
}

} // namespace

std::unique_ptr<GpuTileProduct>
GpuTileProduct::make(GpuBuilder &k, Type element, ArrayRef<int64_t> widths) {
  auto divides = [&](int64_t count) {
    return llvm::all_of(widths,
                        [&](int64_t width) { return width % count == 0; });
  };
  // Two blocks share the registers of a multiprocessor, so that none spills.
  leaveRegistersFor(k, 2);
  if (element.isBF16() && divides(8))
    return std::make_unique<MatrixProduct>(k);
  return std::make_unique<F32Product>(k, /*isWide=*/divides(4));
}

} // namespace rota::lowering
