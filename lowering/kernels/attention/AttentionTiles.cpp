// SPDX-License-Identifier: Apache-2.0
#include "lowering/kernels/attention/AttentionTiles.h"

#include "runtime/TileAbi.h"

using namespace mlir;

namespace rota::lowering {

static constexpr int64_t kBlock = AttentionTiles::kBlock;
static constexpr int64_t kStep = 2 * ROTA_TILE_PAIRS; // elements
/// Pairs of a block of keys or queries.
static constexpr int64_t kPairs = kBlock / 2;
static_assert(kBlock == ROTA_TILE_ROWS && kBlock == ROTA_TILE_COLUMNS &&
              kBlock == kStep && AttentionTiles::kColumns == ROTA_TILE_PAIRS);

/// Pairs of a row that is completed with zeros.
static int64_t paddedPairs(int64_t size) {
  return int64_t(llvm::alignTo(size, kStep)) / 2;
}

AttentionTiles::AttentionTiles(KernelBuilder &k, int64_t largestSize) : k(k) {
  assert(2 * k.lanes() == kBlock);
  Type i32 = k.ops().getI32Type();
  keyCopy = k.local(kBlock * paddedPairs(largestSize), i32);
  scores = k.stack(kBlock * kBlock);
  queryWeights = k.local(kBlock * kPairs, i32);
  factors = k.stack(kBlock);
}

void AttentionTiles::around(unsigned argument,
                            llvm::function_ref<void()> body) {
  service = k.tiles(argument);
  k.beginTiles(service);
  body();
  k.endTiles(service);
}

//===----------------------------------------------------------------------===//
// Panels
//===----------------------------------------------------------------------===//

Memory AttentionTiles::panels(int64_t depth, int64_t width) {
  int64_t elements = paddedPairs(depth) * int64_t(llvm::alignTo(width, kBlock));
  Memory memory = k.local(elements, k.ops().getI32Type());
  k.clear(memory, elements * int64_t(sizeof(int32_t)));
  return memory;
}

Value AttentionTiles::panelIndex(Value pair, Value d) {
  Value inPanel = k.add(k.mul(pair, kBlock), k.rem(d, kBlock));
  return k.add(k.mul(k.div(d, kBlock), kPairs * kBlock), inPanel);
}

void AttentionTiles::clearPanels(Memory panels, int64_t size, Value count) {
  k.loop(0, llvm::divideCeil(size, kBlock), 1, [&](Value panel) {
    clearPairs(k.offset(panels, k.mul(panel, kPairs * kBlock)),
               pairsOf(k, count), kPairs, kBlock);
  });
}

void AttentionTiles::clearPairs(Memory memory, Value first, int64_t end,
                                int64_t width) {
  Memory numbers{memory.base, k.ops().getF32Type()};
  k.loop(first, k.i64(end), 1, [&](Value row) {
    for (int64_t at = 0; at < width; at += k.lanes())
      k.storeVector(k.splat(0.0f), numbers, k.add(k.mul(row, width), at),
                    k.lanes());
  });
}

//===----------------------------------------------------------------------===//
// Sums of queries
//===----------------------------------------------------------------------===//

void AttentionTiles::keepFactors(ArrayRef<Value> factor) {
  for (auto [v, numbers] : llvm::enumerate(factor))
    k.storeVector(numbers, factors, k.i64(int64_t(v) * k.lanes()), k.lanes());
}

void AttentionTiles::scale(Memory sums, int64_t size, ArrayRef<Value> factor) {
  keepFactors(factor);
  k.loop(0, kBlock, 1, [&](Value query) {
    Value shrink = factorOf(query);
    k.loop(0, padded(size), k.lanes(), [&](Value d) {
      Value at = k.add(k.mul(query, padded(size)), d);
      k.storeVector(k.mulf(k.loadVector(sums, at, k.lanes()), shrink), sums, at,
                    k.lanes());
    });
  });
}

void AttentionTiles::storeSums(Memory sums, ArrayRef<Value> factor,
                               StridedRows rows, Value count) {
  keepFactors(factor);
  k.loop(k.i64(0), count, 1, [&](Value query) {
    Value scale = factorOf(query), row = k.mul(query, rows.stride);
    forChunks(k, rows.size, k.lanes(), [&](Value d, int64_t columns) {
      Value at = k.add(k.mul(query, padded(rows.size)), d);
      k.storeVector(k.mulf(k.loadVector(sums, at, k.lanes()), scale),
                    rows.memory, k.add(row, d), columns);
    });
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

void AttentionTiles::copyKeys(StridedRows keys, Value count) {
  int64_t width = paddedPairs(keys.size);
  k.loop(k.i64(0), count, 1, [&](Value row) {
    forChunks(k, keys.size, kStep, [&](Value d, int64_t found) {
      Value at = k.add(k.mul(row, keys.stride), d);
      k.storeVector(k.loadBf16Pairs(keys.memory, at, found), keyCopy,
                    k.add(k.mul(row, width), k.div(d, 2)), k.lanes());
    });
  });
}

void AttentionTiles::multiplyKeys(StridedRows keys, Value count,
                                  Memory panels) {
  copyKeys(keys, count);
  k.multiplyTiles(service, {.a = keyCopy,
                            .b = panels,
                            .pairs = paddedPairs(keys.size),
                            .sums = scores,
                            .stride = kBlock,
                            .columns = kBlock,
                            .adds = false});
}

SmallVector<Value> AttentionTiles::products(Value first, int64_t rows) {
  SmallVector<Value> block;
  for (int64_t at = 0; at < rows * kBlock; at += k.lanes())
    block.push_back(
        k.loadVector(scores, k.add(k.mul(first, kBlock), at), k.lanes()));
  return block;
}

void AttentionTiles::transpose(Memory weights) {
  for (int64_t query = 0; query < kBlock; query += k.lanes()) {
    SmallVector<Value> square;
    for (int64_t pair = 0; pair < kPairs; ++pair)
      square.push_back(
          k.loadVector(weights, k.i64(pair * kBlock + query), k.lanes()));
    k.transpose(square);
    for (auto [lane, pairs] : llvm::enumerate(square))
      k.storeVector(pairs, queryWeights,
                    k.i64((query + int64_t(lane)) * kPairs), k.lanes());
  }
}

void AttentionTiles::addKeys(Memory sums, ArrayRef<Value> factor,
                             StridedRows keys, Value count, Memory weights) {
  if (!factor.empty())
    scale(sums, keys.size, factor);
  clearPairs(weights, pairsOf(k, count), kPairs, kBlock);
  transpose(weights);
  k.multiplyTiles(service, {.a = queryWeights,
                            .b = keys.memory,
                            .pairs = kPairs,
                            .sums = sums,
                            .stride = padded(keys.size),
                            .columns = padded(keys.size),
                            .adds = true});
}

void AttentionTiles::addQueries(StridedRows sums, Value count, Memory weights,
                                Memory values) {
  clearPairs(weights, count, kBlock, kPairs);
  k.multiplyTiles(service, {.a = weights,
                            .b = values,
                            .pairs = kPairs,
                            .sums = sums.memory,
                            .stride = sums.stride,
                            .columns = padded(sums.size),
                            .adds = true});
}

} // namespace rota::lowering
