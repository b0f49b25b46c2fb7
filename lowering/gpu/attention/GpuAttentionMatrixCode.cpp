// SPDX-License-Identifier: Apache-2.0
//
// Stages of tiles in shared memory, and scores.
#include "lowering/gpu/attention/GpuAttentionMatrixCode.h"

#include "llvm/ADT/MapVector.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace rota::lowering {

MatrixAttentionCode::MatrixAttentionCode(GpuBuilder &k,
                                         const AttentionShape &shape,
                                         const MatrixTiling &tiling)
    : k(k), shape(shape), tiling(tiling), places(k, shape),
      code(k, shape.size, tiling.block), parts(code.parts()),
      unit(shape.softCap != 0.0f ? shape.softCap : shape.scale),
      scale(k.f32(unit * std::numbers::log2e_v<float>)),
      stages(allocateRows(4 * tiling.tile)) {
  leaveRegistersFor(k, tiling.resident);
}

MatrixAttentionCode::Tiles MatrixAttentionCode::stageOf(Value number) {
  int64_t size = tiling.tile * code.width();
  Memory first = k.offset(stages, k.mul(number, 2 * size));
  return {{first, tiling.tile}, {k.offset(first, k.i32(size)), tiling.tile}};
}

void MatrixAttentionCode::startTile(const Sources &rows, Value first,
                                    Value stage) {
  Tiles to = stageOf(stage);
  code.startCopy(rows.first, first, shape.sequence, to.first);
  code.startCopy(rows.second, first, shape.sequence, to.second);
}

void MatrixAttentionCode::advance(Value exists,
                                  llvm::function_ref<void()> start) {
  code.waitForCopies(0);
  k.barrier();
  k.when(exists, start);
  code.endCopyGroup();
}

MatrixAttentionCode::Values MatrixAttentionCode::walkKeys(const Sources &keys,
                                                          Value first,
                                                          ValueRange initial,
                                                          KeyBody body) {
  int64_t rows = tiling.tile;
  auto stage = [&](Value key) { return k.rem(k.div(key, rows), 2); };
  Value begin = places.keyBegin(first, rows);
  Value end = places.keyEnd(begin, first, ownRows());
  startFirst(k.isLess(begin, end),
             [&] { startTile(keys, begin, stage(begin)); });
  Values after =
      k.loop(begin, end, rows, initial, [&](Value key, ValueRange carried) {
        Value next = k.add(key, rows);
        advance(k.isLess(next, end),
                [&] { startTile(keys, next, stage(next)); });
        return body(key, stageOf(stage(key)), carried);
      });
  endWalk();
  return after;
}

void MatrixAttentionCode::startFirst(Value exists,
                                     llvm::function_ref<void()> start) {
  if (places.mayBeEmpty())
    k.when(exists, start);
  else
    start();
  code.endCopyGroup();
}

void MatrixAttentionCode::endWalk() {
  if (places.mayBeEmpty())
    code.waitForCopies(0);
  // Warps of a group read each other's own rows, over which results are
  // written. All products have been waited for.
  if (places.mayBeEmpty() || tiling.block.unit == MatrixUnit::Warpgroup)
    k.barrier();
}

void MatrixAttentionCode::maskDocuments(GpuMatrixCode &part, Values &scores,
                                        Value first, Value other,
                                        Queries queries) {
  bool areRows = queries == Queries::Rows;
  Value lowest = k.f32(-std::numeric_limits<float>::infinity());
  llvm::SmallMapVector<int64_t, Value, 16> starts; // by row or column
  for (auto [i, score] : llvm::enumerate(scores)) {
    Value row = k.add(first, part.rowInBlock(part.rowOf(i)));
    Value column = k.add(k.add(other, part.columnOfLane()), part.columnOf(i));
    Value &start = starts[areRows ? part.rowOf(i) : part.columnOf(i)];
    if (!start)
      start = places.documentStart(areRows ? row : column);
    Value isBefore = k.isLess(areRows ? column : row, start);
    score = k.select(isBefore, lowest, score);
  }
}

void MatrixAttentionCode::maskPartial(GpuMatrixCode &part, Values &scores,
                                      Value first, Value other,
                                      Queries queries) {
  bool areRows = queries == Queries::Rows;
  AttentionWalk &walk = areRows ? places.keys() : places.queries();
  Value partial = walk.isPartial(first, ownRows(), other, tiling.tile);
  // Queries beyond the sequence are zeros, and add none.
  Value beyond = areRows ? places.isBeyond(other, tiling.tile) : Value();
  Value keys = beyond ? k.sub(k.i32(shape.sequence), other) : Value();
  if (beyond)
    partial = partial ? k.either(partial, beyond) : beyond;
  if (shape.hasDocuments) {
    // Starts ascend: the last query's is beyond the most keys.
    Value last =
        k.add(areRows ? first : other, (areRows ? ownRows() : tiling.tile) - 1);
    Value cut = k.isLess(areRows ? other : first, places.documentStart(last));
    partial = partial ? k.either(partial, cut) : cut;
  }
  if (!partial)
    return;
  scores = k.choose(
      partial,
      [&] {
        Values masked = scores;
        part.mask(masked, k.sub(first, other), queries, shape.mask, keys);
        if (shape.hasDocuments)
          maskDocuments(part, masked, first, other, queries);
        return masked;
      },
      [&] { return scores; });
}

void MatrixAttentionCode::bend(Values &products) {
  if (shape.softCap == 0.0f)
    return;
  // tanh(x) = 1 - 2 / (1 + e^(2 x)), as two instructions that are exact enough
  // for weights in bf16.
  float power = 2 * shape.scale / shape.softCap * std::numbers::log2e_v<float>;
  Value factor = k.f32(power), one = k.f32(1.0f), minusTwo = k.f32(-2.0f);
  for (Value &product : products) {
    Value grown = k.addf(one, fastExp2(k, k.mulf(product, factor)));
    product = k.fma(minusTwo, k.divf(one, grown), one);
  }
}

} // namespace rota::lowering
