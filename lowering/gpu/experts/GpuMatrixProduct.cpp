// SPDX-License-Identifier: Apache-2.0
#include "lowering/gpu/experts/GpuMatrixProduct.h"

#include "lowering/kernels/Emit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace rota::lowering {

using Values = GpuTileProduct::Values;

MatrixProduct::MatrixProduct(GpuBuilder &k, const TileShape &tile,
                             MatrixUnit unit)
    : GpuTileProduct(k), tile(tile), unit(unit),
      runsOn(tile.columns == kWideTile), stageCount(runsOn ? 4 : 3),
      fragmentsDown(unit == MatrixUnit::Warp ? 4 : 1),
      fragmentsAcross(unit == MatrixUnit::Warp ? 2 : tile.columns / kRows),
      thread(k.thread()), lane(k.rem(thread, kWarp)),
      stages(k.allocateShared(stageCount * (tile.rows + tile.columns) * kDepth,
                              k.ops().getBF16Type())) {
  int64_t warpsAcross = tile.columns / (fragmentsAcross * kRows);
  Value warp = k.div(thread, kWarp);
  down = k.mul(k.div(warp, warpsAcross), fragmentsDown * kRows);
  across = k.mul(k.rem(warp, warpsAcross), fragmentsAcross * kRows);
}

MatrixProduct::Slices MatrixProduct::slicesOf(Value stage, const TileSide &left,
                                              const TileSide &right) {
  int64_t ofLeft = tile.rows * kDepth, ofRight = tile.columns * kDepth;
  Memory first = k.offset(stages, k.mul(stage, ofLeft + ofRight));
  return {{first, left.depthLast ? tile.rows : kDepth},
          {k.offset(first, k.i32(ofLeft)),
           right.depthLast ? tile.columns : kDepth}};
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

MatrixProduct::Share MatrixProduct::shareOf(const TileSide &side, int64_t own) {
  int64_t rowElements = side.depthLast ? kDepth : own;
  int64_t chunks = rowElements / kVector;
  Share share{side,
              k.div(thread, chunks),
              k.rem(thread, chunks),
              /*apart=*/kThreads / chunks,
              /*count=*/side.depthLast ? own : kDepth,
              {}};
  // A number of rows after which the swizzle repeats.
  static_assert(kThreads / (kWideTile / kVector) % kSwizzledRows == 0);
  bool haveNumbers = side.rows.base != nullptr;
  if (!side.depthLast && haveNumbers)
    return share;
  Memory from = k.offset(side.from, k.widen(k.mul(share.chunk, kVector)));
  for (int64_t i = 0; i < (haveNumbers ? share.count : 1); i += share.apart)
    share.lines.push_back(k.offset(
        from, k.mul(rowNumber(side.rows, k.add(share.row, i)), side.stride)));
  return share;
}

SmallVector<Memory> MatrixProduct::sourcesOf(const Share &share, Value number) {
  const TileSide &side = share.side;
  SmallVector<Memory> sources;
  Value first = k.mul(number, kDepth);
  if (share.lines.empty()) {
    Value row = k.add(first, share.row);
    Memory from = k.offset(side.from, k.widen(k.mul(share.chunk, kVector)));
    for (int64_t i = 0; i < share.count; i += share.apart)
      sources.push_back(k.offset(
          from, k.mul(rowNumber(side.rows, k.add(row, i)), side.stride)));
    return sources;
  }
  Value forward = k.mul(k.widen(first), side.depthLast ? 1 : side.stride);
  for (Memory line : share.lines)
    sources.push_back(k.offset(line, forward));
  if (share.lines.size() == 1)
    for (int64_t i = share.apart; i < share.count; i += share.apart)
      sources.push_back(k.offset(sources.front(), k.i64(i * side.stride)));
  return sources;
}

void MatrixProduct::startCopy(const Share &share, Value number, Value depths,
                              MatrixTile to) {
  const TileSide &side = share.side;
  Value element = k.mul(share.chunk, kVector);
  Value depth =
      k.add(k.mul(number, kDepth), side.depthLast ? element : share.row);
  Memory chunk =
      k.offset(to.memory, swizzledElement(k, to, share.row, share.chunk));
  Value count = side.count ? k.narrow(side.count) : Value();
  // Own rows that have numbers all exist.
  bool ownMayLack = count && !(side.depthLast && side.rows.base);
  for (auto [at, from] : llvm::enumerate(sourcesOf(share, number))) {
    int64_t i = int64_t(at) * share.apart;
    Value exists;
    auto need = [&](Value condition) {
      exists = exists ? k.both(exists, condition) : condition;
    };
    if (ownMayLack)
      need(k.isLess(side.depthLast ? k.add(share.row, i) : element, count));
    if (depths)
      need(k.isLess(side.depthLast ? depth : k.add(depth, i), depths));
    startAccess(k, from, k.offset(chunk, k.i32(i * MatrixTile::kPanelColumns)),
                kAccessBytes, exists);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

Value MatrixProduct::laneElement(const TileSide &side, MatrixTile slice,
                                 bool isLeft) {
  // Lanes 8 m to 8 m + 7 give the rows of matrix m. A left fragment has first
  // the matrices of its two halves of rows, a right one those of the depth.
  Value matrix = k.div(lane, 8), line = k.rem(lane, 8);
  Value low = k.rem(matrix, 2), high = k.div(matrix, 2);
  Value ofOwn = isLeft ? low : high, ofDepth = isLeft ? high : low;
  Value own = isLeft ? down : across;
  if (side.depthLast)
    return swizzledElement(k, slice, k.add(k.add(own, line), k.mul(ofOwn, 8)),
                           ofDepth);
  return swizzledElement(k, slice, k.add(line, k.mul(ofDepth, 8)),
                         k.add(k.div(own, kVector), ofOwn));
}

MatrixFragment MatrixProduct::load(const TileSide &side, MatrixTile slice,
                                   Value element, int64_t own, int64_t step) {
  // Along a row the next fragment differs in bits that the first one lacks.
  int64_t along = side.depthLast ? step : own,
          rows = side.depthLast ? own : step;
  Value at = arith::XOrIOp::create(k.ops(), element, k.i32(along * kRows));
  return loadMatrices(k,
                      k.offset(k.offset(slice.memory, at),
                               k.i32(rows * kRows * MatrixTile::kPanelColumns)),
                      /*transposed=*/!side.depthLast);
}

Value MatrixProduct::isNeeded(const TileSide &left, const TileSide &right) {
  Value needed;
  for (auto [side, own] : {std::pair(&left, down), {&right, across}})
    if (side->count) {
      Value isInside = k.isLess(k.widen(own), side->count);
      needed = needed ? k.both(needed, isInside) : isInside;
    }
  return needed;
}

Values MatrixProduct::multiplyByWarps(const TileSide &left,
                                      const TileSide &right, Slices slices,
                                      ValueRange sums) {
  Value atLeft = laneElement(left, slices.left, /*isLeft=*/true);
  Value atRight = laneElement(right, slices.right, /*isLeft=*/false);
  Values after(sums);
  for (int64_t step = 0; step < kDepth / kRows; ++step) {
    SmallVector<MatrixFragment> own;
    for (int64_t i = 0; i < fragmentsDown; ++i)
      own.push_back(load(left, slices.left, atLeft, i, step));
    for (int64_t n = 0; n < fragmentsAcross; ++n) {
      MatrixFragment other = load(right, slices.right, atRight, n, step);
      for (int64_t i = 0; i < fragmentsDown; ++i)
        multiplyAdd(
            k, own[i], other,
            MutableArrayRef<Value>(after).slice(sumsAt(i, n), kFragmentSums));
    }
  }
  return after;
}

Values MatrixProduct::startByGroups(const TileSide &left, const TileSide &right,
                                    Slices slices, ValueRange sums) {
  // Where rows are depths the group's rows are a panel, as long as 64 rows.
  static_assert(kDepth == kGroupRows &&
                MatrixTile::kPanelColumns == kGroupRows);
  Value ofLeft =
      describeTile(k, slices.left, k.mul(groupOfThread(k), kGroupRows));
  Value ofRight = describeTile(k, slices.right);
  auto offsetOf = [](const TileSide &side, MatrixTile slice, int64_t depth) {
    return side.depthLast ? slice.offsetOf(0, depth) : slice.offsetOf(depth, 0);
  };
  WarpgroupSums product;
  product.sums = Values(sums);
  for (int64_t depth = 0; depth < kDepth; depth += kRows)
    product.steps.push_back({{ofLeft},
                             ofRight,
                             offsetOf(left, slices.left, depth),
                             offsetOf(right, slices.right, depth)});
  startOfWarpgroup(k, product, tile.columns,
                   {.left = !left.depthLast, .right = !right.depthLast});
  return product.sums;
}

Values MatrixProduct::multiply(const TileSide &left, const TileSide &right,
                               Value depths, ValueRange sums) {
  APInt known;
  bool areWhole =
      matchPattern(depths, m_ConstantInt(&known)) && known.urem(kDepth) == 0;
  Value count = k.narrow(depths);
  Value slices = k.div(k.add(count, kDepth - 1), kDepth);
  Value end = areWhole ? Value() : count;
  // Numbers of rows are there, and no warp multiplies what is in a stage.
  k.barrier();
  Share ofLeft = shareOf(left, tile.rows),
        ofRight = shareOf(right, tile.columns);
  auto start = [&](Value number, Value stage) {
    k.when(k.isLess(number, slices), [&] {
      Slices to = slicesOf(stage, left, right);
      startCopy(ofLeft, number, end, to.left);
      startCopy(ofRight, number, end, to.right);
    });
    NVVM::CpAsyncCommitGroupOp::create(k.ops());
  };
  // Slices are multiplied some turns after their copies have begun. A stage is
  // free when its product has been waited for. Where two blocks share a
  // multiprocessor, one multiplies while the other waits; a block alone waits
  // for each product in the turn after it.
  int64_t ahead = stageCount - (runsOn ? 2 : 1);
  k.loop(k.i32(0), k.i32(ahead), 1, [&](Value turn) { start(turn, turn); });
  Value needed = isNeeded(left, right);
  Values carried{k.i32(0)};
  llvm::append_range(carried, sums);
  Values last =
      k.loop(k.i32(0), slices, 1, carried, [&](Value turn, ValueRange before) {
        Value stage = before[0];
        ValueRange own = before.drop_front();
        auto stageAfter = [&](int64_t turns) {
          Value next = k.add(stage, turns);
          return k.select(k.isLess(next, k.i32(stageCount)), next,
                          k.add(next, -stageCount));
        };
        NVVM::CpAsyncWaitGroupOp::create(k.ops(), uint32_t(ahead - 1));
        bool byGroups = unit == MatrixUnit::Warpgroup;
        if (byGroups)
          showWarpgroups(k);
        // All warps have multiplied what lies in the stage that is filled now.
        k.barrier();
        Slices here = slicesOf(stage, left, right);
        Values after;
        if (byGroups)
          after = startByGroups(left, right, here, own);
        start(k.add(turn, ahead), stageAfter(ahead));
        auto byWarps = [&] { return multiplyByWarps(left, right, here, own); };
        if (byGroups)
          waitForWarpgroup(k, /*pending=*/runsOn ? 1 : 0,
                           runsOn ? MutableArrayRef<Value>() : after);
        else if (needed)
          after = k.choose(needed, byWarps, [&] { return Values(own); });
        else
          after = byWarps();
        after.insert(after.begin(), stageAfter(1));
        return after;
      });
  Values all(ArrayRef(last).drop_front());
  if (runsOn)
    waitForWarpgroup(k, /*pending=*/0, all);
  return all;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void MatrixProduct::eachRow(
    const TilePlace &place,
    llvm::function_ref<void(Value row, int64_t half)> body) {
  Value row = k.add(down, k.div(lane, 4));
  // All rows are compared by one register.
  Value inPlace = k.sub(row, k.narrow(place.low));
  Value rows = k.max(k.narrow(k.sub(place.high, place.low)), k.i32(0));
  for (int64_t half = 0; half < 2 * fragmentsDown; ++half) {
    // Without its sign a row before the first one is beyond the last.
    Value exists = arith::CmpIOp::create(k.ops(), arith::CmpIPredicate::ult,
                                         k.add(inPlace, half * 8), rows);
    k.when(exists, [&] { body(k.add(row, half * 8), half); });
  }
}

Value MatrixProduct::pairOfSums(ValueRange sums, int64_t half, int64_t part) {
  int64_t i = sumsAt(half / 2, part / 2) + part % 2 * 4 + half % 2 * 2;
  return pairOf(k, sums[i], sums[i + 1]);
}

void MatrixProduct::storeDirectly(ValueRange sums, const TilePlace &place,
                                  bool accumulate) {
  Value column = k.add(across, k.mul(k.rem(lane, 4), 2));
  Memory line = k.offset(place.to, k.widen(column));
  Value columns =
      place.columns ? k.sub(k.narrow(place.columns), column) : Value();
  eachRow(place, [&](Value row, int64_t half) {
    Memory to = k.offset(line, k.mul(rowNumber(place.rows, row), place.stride));
    if (columns) {
      for (int64_t part = 0; part < 2 * fragmentsAcross; ++part)
        k.when(k.isLess(k.i32(part * 8), columns), [&] {
          storeAt(pairOfSums(sums, half, part), to, k.i64(part * 8),
                  accumulate);
        });
      return;
    }
    // What is added to is on its way at once.
    Values pairs;
    for (int64_t part = 0; part < 2 * fragmentsAcross; ++part) {
      Value pair = pairOfSums(sums, half, part);
      if (accumulate)
        pair = k.addf(k.loadVector(to, k.i64(part * 8), 2), pair);
      pairs.push_back(pair);
    }
    for (auto [part, pair] : llvm::enumerate(pairs))
      k.store(pair, to, k.i64(int64_t(part) * 8));
  });
}

void MatrixProduct::storeByRows(ValueRange sums, const TilePlace &place) {
  MatrixTile rowsOfTile{stages, tile.rows};
  // All warps have multiplied what lies there.
  k.barrier();
  Value first = k.div(across, kVector), inChunk = k.mul(k.rem(lane, 4), 2);
  Value row = k.add(down, k.div(lane, 4));
  for (int64_t half = 0; half < 2 * fragmentsDown; ++half)
    for (int64_t part = 0; part < 2 * fragmentsAcross; ++part)
      k.store(pairOfSums(sums, half, part), stages,
              k.add(swizzledElement(k, rowsOfTile, k.add(row, half * 8),
                                    k.add(first, part)),
                    inChunk));
  NVVM::SyncWarpOp::create(k.ops(), k.i32(-1));
  // A warp's rows, some at a time.
  int64_t chunks = fragmentsAcross * kRows / kVector, rows = kWarp / chunks;
  Value chunk = k.add(first, k.rem(lane, chunks));
  Value column = k.mul(chunk, kVector);
  Memory line = k.offset(place.to, k.widen(column));
  Value columns = place.columns ? k.narrow(place.columns) : k.i32(tile.columns);
  Value high = k.narrow(place.high), low = k.narrow(place.low);
  k.when(k.isLess(column, columns), [&] {
    for (int64_t i = 0; i < fragmentsDown * kRows; i += rows) {
      Value own = k.add(k.add(down, k.div(lane, chunks)), i);
      Value exists = k.both(k.isLess(own, high), k.isLess(k.add(low, -1), own));
      Value value = lowering::load(k.ops(), stages.base, stages.element,
                                   swizzledElement(k, rowsOfTile, own, chunk),
                                   kVector, kAccessBytes);
      k.when(exists, [&] {
        k.store(value, line, k.mul(rowNumber(place.rows, own), place.stride));
      });
    }
  });
}

void MatrixProduct::store(ValueRange sums, const TilePlace &place,
                          bool accumulate) {
  if (place.to.element.isBF16() && !accumulate)
    storeByRows(sums, place);
  else
    storeDirectly(sums, place, accumulate);
}

} // namespace rota::lowering
