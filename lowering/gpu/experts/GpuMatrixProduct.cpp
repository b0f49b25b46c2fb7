// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/experts/GpuMatrixProduct.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace rota::lowering {

using Values = GpuTileProduct::Values;

static Value narrow(GpuBuilder &k, Value index) {
  return arith::TruncIOp::create(k.ops(), k.ops().getI32Type(), index);
}

MatrixProduct::MatrixProduct(GpuBuilder &k)
    : GpuTileProduct(k), thread(k.thread()), lane(k.rem(thread, kWarp)),
      down(k.mul(k.div(thread, kWarpsAcross * kWarp), kDown * kRows)),
      across(k.mul(k.rem(k.div(thread, kWarp), kWarpsAcross), kAcross * kRows)),
      stages(k.allocateShared(kStages * 2 * kSliceElements,
                              k.ops().getBF16Type())) {}

Value MatrixProduct::swizzled(const TileSide &side, Value row, Value chunk) {
  return k.add(k.mul(row, rowElements(side)),
               k.mul(swizzledChunk(k, row, chunk), kVector));
}

std::pair<Memory, Memory> MatrixProduct::slicesOf(Value stage) {
  Memory left = k.offset(stages, k.mul(stage, 2 * kSliceElements));
  return {left, k.offset(left, k.i32(kSliceElements))};
}

//===----------------------------------------------------------------------===//
// Walk over depths
//===----------------------------------------------------------------------===//

MatrixProduct::Walk MatrixProduct::begin(int64_t ranges, DepthsOf depthsOf) {
  auto [first, end] = depthsOf(k.i64(0));
  auto [nextFirst, nextEnd] = depthsOf(k.i64(std::min<int64_t>(1, ranges - 1)));
  return {k.i64(0), narrow(k, first), narrow(k, end), narrow(k, nextFirst),
          narrow(k, nextEnd)};
}

MatrixProduct::Walk MatrixProduct::advance(const Walk &walk, int64_t ranges,
                                           DepthsOf depthsOf) {
  Value next = k.add(walk.from, kDepth);
  Value isInside = k.isLess(next, walk.end);
  // What is loaded here is used in the range after the next one alone.
  Values others = k.choose(
      isInside,
      [&] {
        return Values{walk.range, walk.end, walk.nextFirst, walk.nextEnd};
      },
      [&] {
        Value range = k.add(walk.range, 1);
        auto [first, end] = depthsOf(k.min(k.add(range, 1), k.i64(ranges - 1)));
        return Values{range, walk.nextEnd, narrow(k, first), narrow(k, end)};
      });
  return {others[0], k.select(isInside, next, walk.nextFirst), others[1],
          others[2], others[3]};
}

Value MatrixProduct::countSlices(int64_t ranges, DepthsOf depthsOf) {
  return k.loop(k.i64(0), k.i64(ranges), 1, {k.i32(0)},
                [&](Value range, ValueRange sum) -> Values {
                  auto [first, end] = depthsOf(range);
                  Value depths = k.max(narrow(k, k.sub(end, first)), k.i32(1));
                  return {
                      k.add(sum[0], k.div(k.add(depths, kDepth - 1), kDepth))};
                })[0];
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void MatrixProduct::startCopy(const TileSide &side, Value from, Value end,
                              Memory slice) {
  int64_t chunks = rowElements(side) / kVector, rows = kThreads / chunks;
  Value row = k.div(thread, chunks), chunk = k.rem(thread, chunks);
  Value element = k.mul(chunk, kVector);
  Value line = side.depthLast ? row : k.add(row, from);
  Value column = k.widen(side.depthLast ? k.add(element, from) : element);
  Memory source = k.offset(side.from, column);
  auto lineAt = [&](int64_t i) {
    return k.offset(source,
                    k.mul(rowNumber(side.rows, k.add(line, i)), side.stride));
  };
  Memory first = side.rows.base ? source : lineAt(0);
  Memory to = k.offset(slice, swizzled(side, row, chunk));
  Value count = narrow(k, side.count), depths = k.sub(end, from);
  // A number of rows after which the swizzle repeats.
  static_assert(kThreads / (kTile / kVector) % kSwizzledRows == 0);
  for (int64_t i = 0; i < kSliceElements / rowElements(side); i += rows) {
    Value here = k.add(row, i);
    Value exists =
        side.depthLast
            ? k.both(k.isLess(here, count), k.isLess(element, depths))
            : k.both(k.isLess(element, count), k.isLess(here, depths));
    Memory there =
        side.rows.base ? lineAt(i) : k.offset(first, k.i64(i * side.stride));
    startAccess(k, there, k.offset(to, k.i32(i * rowElements(side))),
                kAccessBytes, exists);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value MatrixProduct::laneElement(const TileSide &side, bool isLeft) {
  // Lanes 8 m to 8 m + 7 give the rows of matrix m. A left fragment has first
  // the matrices of its two halves of rows, a right one those of the depth.
  Value matrix = k.div(lane, 8), line = k.rem(lane, 8);
  Value low = k.rem(matrix, 2), high = k.div(matrix, 2);
  Value ofOwn = isLeft ? low : high, ofDepth = isLeft ? high : low;
  Value own = isLeft ? down : across;
  if (side.depthLast)
    return swizzled(side, k.add(k.add(own, line), k.mul(ofOwn, 8)), ofDepth);
  return swizzled(side, k.add(line, k.mul(ofDepth, 8)),
                  k.add(k.div(own, kVector), ofOwn));
}

MatrixFragment MatrixProduct::load(const TileSide &side, Memory slice,
                                   Value element, int64_t own, int64_t step) {
  // Along a row the next fragment differs in bits that the first one lacks.
  int64_t along = side.depthLast ? step : own,
          rows = side.depthLast ? own : step;
  Value at = arith::XOrIOp::create(k.ops(), element, k.i32(along * kRows));
  return loadMatrices(
      k, k.offset(k.offset(slice, at), k.i32(rows * kRows * rowElements(side))),
      /*transposed=*/!side.depthLast);
}

Value MatrixProduct::isNeeded(const TileSide &left, const TileSide &right) {
  return k.both(k.isLess(k.widen(down), left.count),
                k.isLess(k.widen(across), right.count));
}

Values MatrixProduct::multiplySlices(const TileSide &left,
                                     const TileSide &right, Value stage,
                                     ValueRange sums) {
  auto [ofLeft, ofRight] = slicesOf(stage);
  Value atLeft = laneElement(left, /*isLeft=*/true);
  Value atRight = laneElement(right, /*isLeft=*/false);
  Values after(sums);
  for (int64_t step = 0; step < kDepth / kRows; ++step) {
    SmallVector<MatrixFragment, kDown> own;
    for (int64_t i = 0; i < kDown; ++i)
      own.push_back(load(left, ofLeft, atLeft, i, step));
    for (int64_t n = 0; n < kAcross; ++n) {
      MatrixFragment other = load(right, ofRight, atRight, n, step);
      for (int64_t i = 0; i < kDown; ++i)
        multiplyAdd(
            k, own[i], other,
            MutableArrayRef<Value>(after).slice(sumsAt(i, n), kFragmentSums));
    }
  }
  return after;
}

Values MatrixProduct::multiply(int64_t ranges, DepthsOf depthsOf,
                               SidesOf sidesOf, ValueRange sums) {
  Value slices = countSlices(ranges, depthsOf);
  auto [anyLeft, anyRight] = sidesOf(k.i64(0));
  Value needed = isNeeded(anyLeft, anyRight);
  // Slices are multiplied some turns after their copies have begun.
  constexpr int64_t ahead = kStages - 1;
  Values carried{k.i32(0)};
  llvm::append_range(carried, begin(ranges, depthsOf).values());
  int64_t front = carried.size();
  llvm::append_range(carried, sums);
  Values last = k.loop(
      k.i32(0), k.add(slices, ahead), 1, carried,
      [&](Value turn, ValueRange before) {
        Value stage = before[0];
        Walk walk{before[1], before[2], before[3], before[4], before[5]};
        NVVM::CpAsyncWaitGroupOp::create(k.ops(), uint32_t(ahead - 1));
        // All warps have multiplied what lies in the stage, in an earlier
        // product, too.
        k.barrier();
        k.when(k.isLess(turn, slices), [&] {
          auto [left, right] = sidesOf(walk.range);
          auto [toLeft, toRight] = slicesOf(stage);
          startCopy(left, walk.from, walk.end, toLeft);
          startCopy(right, walk.from, walk.end, toRight);
        });
        NVVM::CpAsyncCommitGroupOp::create(k.ops());
        // The next stage to be filled is the one that is multiplied now.
        Value next = k.select(k.isEqual(stage, k.i32(kStages - 1)), k.i32(0),
                              k.add(stage, 1));
        Values after{next};
        llvm::append_range(after, advance(walk, ranges, depthsOf).values());
        ValueRange own = before.drop_front(front);
        llvm::append_range(
            after,
            k.choose(
                k.both(needed, k.isLess(k.i32(ahead - 1), turn)),
                [&] { return multiplySlices(anyLeft, anyRight, next, own); },
                [&] { return Values(own); }));
        return after;
      });
  return Values(ArrayRef(last).drop_front(front));
}

void MatrixProduct::store(ValueRange sums, const TilePlace &place,
                          bool accumulate) {
  Value row = k.add(down, k.div(lane, 4));
  Value column = k.add(across, k.mul(k.rem(lane, 4), 2));
  Memory line = k.offset(place.to, k.widen(column));
  Memory first = k.offset(line, k.mul(k.widen(row), place.stride));
  // All rows are compared by one register.
  Value inPlace = k.sub(row, narrow(k, place.low));
  Value rows = k.max(narrow(k, k.sub(place.high, place.low)), k.i32(0));
  Value columns = k.sub(narrow(k, place.columns), column);
  for (int64_t half = 0; half < 2 * kDown; ++half) {
    // Without its sign a row before the first one is beyond the last.
    Value exists = arith::CmpIOp::create(k.ops(), arith::CmpIPredicate::ult,
                                         k.add(inPlace, half * 8), rows);
    k.when(exists, [&] {
      // All addresses of rows that ascend are near one.
      int64_t from = place.rows.base ? 0 : half * 8 * place.stride;
      Memory to =
          place.rows.base
              ? k.offset(line,
                         k.mul(rowNumber(place.rows, k.add(row, half * 8)),
                               place.stride))
              : first;
      for (int64_t part = 0; part < 2 * kAcross; ++part) {
        int64_t i = sumsAt(half / 2, part / 2) + part % 2 * 4 + half % 2 * 2;
        k.when(k.isLess(k.i32(part * 8), columns), [&] {
          storeAt(pairOf(k, sums[i], sums[i + 1]), to, k.i64(from + part * 8),
                  accumulate);
        });
      }
    });
  }
}

} // namespace rota::lowering
