// SPDX-License-Identifier: Apache-2.0
//
// Stages of tiles in shared memory, and scores.
#include "lowering/gpu/GpuAttentionMatrixCode.h"

#include <numbers>

using namespace mlir;

namespace rota::lowering {

MatrixAttentionCode::MatrixAttentionCode(GpuBuilder &k,
                                         const AttentionShape &shape,
                                         const MatrixTiling &tiling)
    : k(k), shape(shape), tiling(tiling), places(k, shape),
      code(k, shape.size, tiling.block),
      scale(k.f32(shape.scale * std::numbers::log2e_v<float>)),
      stages(allocateRows(4 * tiling.tile)) {
  leaveRegistersFor(k, tiling.resident);
}

MatrixAttentionCode::Tiles MatrixAttentionCode::stageOf(Value number) {
  int64_t rows = tiling.tile * code.stride();
  Memory first = k.offset(stages, k.mul(number, 2 * rows));
  return {first, k.offset(first, k.i32(rows))};
}

void MatrixAttentionCode::startTile(const Sources &rows, Value first,
                                    Value stage) {
  Tiles to = stageOf(stage);
  code.startCopy(rows.first, first, tiling.tile, shape.sequence, to.first);
  code.startCopy(rows.second, first, tiling.tile, shape.sequence, to.second);
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
  startTile(keys, k.i32(0), k.i32(0));
  code.endCopyGroup();
  // Keys beyond the sequence are beyond every query in it.
  Value end = k.min(k.add(first, ownRows()), k.i32(shape.sequence));
  return k.loop(k.i32(0), end, rows, initial,
                [&](Value key, ValueRange carried) {
                  Value next = k.add(key, rows);
                  advance(k.isLess(next, end),
                          [&] { startTile(keys, next, stage(next)); });
                  return body(key, stageOf(stage(key)), carried);
                });
}

MatrixAttentionCode::Values MatrixAttentionCode::products(Memory own,
                                                          Memory tile) {
  auto addresses =
      code.addressesOf(code.ownRows(own), GpuMatrixCode::Order::Left);
  return code.dot(addresses, tile, tiling.tile);
}

void MatrixAttentionCode::maskOnDiagonal(Values &scores, Value first,
                                         Value other, Queries queries) {
  bool areRows = queries == Queries::Rows;
  Value onDiagonal = areRows ? k.isLess(first, k.add(other, tiling.tile))
                             : k.isLess(other, k.add(first, ownRows()));
  scores = k.choose(
      onDiagonal,
      [&] {
        Values masked = scores;
        code.mask(masked, k.sub(first, other), queries);
        return masked;
      },
      [&] { return scores; });
}

} // namespace rota::lowering
