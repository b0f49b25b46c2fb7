// SPDX-License-Identifier: Apache-2.0
//
// Attention's products by tiles of the runtime (runtime/TileAbi.h): a block of
// queries by a block of keys is one call, out of memory and into memory. What
// lies across the lanes is in panels, in place of [pair][row]. Sums of queries
// are [query][padded size], since weights are transposed in half the time of
// values:
//
//   out[query][d] += sum over keys of Pt[query][key/2] * V[key/2][d]
//
// Keys that a block lacks have weight zero, and what they are multiplied by is
// zero too, so that nothing depends on what a block had before.
#ifndef ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONTILES_H
#define ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONTILES_H

#include "lowering/kernels/attention/StridedRows.h"
#include "llvm/Support/MathExtras.h"

namespace rota::lowering {

/// Pairs of `count` elements, the last of which may lack its second.
inline mlir::Value pairsOf(KernelBuilder &k, mlir::Value count) {
  return k.div(k.add(count, 1), 2);
}

class AttentionTiles {
public:
  /// Queries, and keys, of a block.
  static constexpr int64_t kBlock = 32;
  /// Columns of sums are a multiple of it.
  static constexpr int64_t kColumns = 16;
  static int64_t padded(int64_t size) {
    return int64_t(llvm::alignTo(size, kColumns));
  }

  /// For heads of at most `largestSize`.
  AttentionTiles(KernelBuilder &k, int64_t largestSize);

  /// Writes `body`, which has all products, into a kernel whose argument number
  /// `argument` is RotaTiles.
  void around(unsigned argument, llvm::function_ref<void()> body);

  /// Stack memory of panels of zeros for [depth][width] elements.
  Memory panels(int64_t depth, int64_t width);
  /// Index of the pair of column `d` in panels of a block.
  mlir::Value panelIndex(mlir::Value pair, mlir::Value d);
  /// Zeroes the pairs of the keys from `count` on in panels of `size` columns.
  void clearPanels(Memory panels, int64_t size, mlir::Value count);

  /// Products of `count` keys with the block of queries in `panels`.
  void multiplyKeys(StridedRows keys, mlir::Value count, Memory panels);
  /// Those of `rows` keys from `first` on, a vector after the other.
  llvm::SmallVector<mlir::Value> products(mlir::Value first, int64_t rows);
  /// sums[query][d] = sums * factor + sum over keys < count of
  /// weights[key][query] * keys[key][d], of panels. A null factor is 1.
  void addKeys(Memory sums, llvm::ArrayRef<mlir::Value> factor,
               StridedRows keys, mlir::Value count, Memory weights);
  /// sums[key][d] += sum over queries of weights[key][query] *
  /// values[query][d], of panels.
  void addQueries(StridedRows sums, mlir::Value count, Memory weights,
                  Memory values);
  /// Writes sums * factor[query] of the first `count` queries to `rows`.
  void storeSums(Memory sums, llvm::ArrayRef<mlir::Value> factor,
                 StridedRows rows, mlir::Value count);

private:
  /// Copies `count` keys, each completed with zeros.
  void copyKeys(StridedRows keys, mlir::Value count);
  /// Writes weights as [query][key].
  void transpose(Memory weights);
  /// Zeroes rows of `width` pairs, from row `first` on to below `end`.
  void clearPairs(Memory memory, mlir::Value first, int64_t end, int64_t width);
  /// sums[query][d] *= factor[query].
  void scale(Memory sums, int64_t size, llvm::ArrayRef<mlir::Value> factor);
  /// Keeps a number for each query. factorOf broadcasts that of query `i`.
  void keepFactors(llvm::ArrayRef<mlir::Value> factor);
  mlir::Value factorOf(mlir::Value i) {
    return k.broadcast(k.load(factors, i));
  }

  KernelBuilder &k;
  Memory service{};    // RotaTiles
  Memory keyCopy;      // pairs [key][size / 2]
  Memory scores;       // f32 [key][query]
  Memory queryWeights; // pairs [query][key / 2]
  Memory factors;      // f32 [query]
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONTILES_H
