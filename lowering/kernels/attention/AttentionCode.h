// SPDX-License-Identifier: Apache-2.0
//
// The pieces that attention's forward and backward kernels are made of. Queries
// are taken in blocks of two vectors and lie across the lanes: scores, their
// maxima and sums are then vertical, and every product is a broadcast element
// times a vector.
//
//   scores[key][query]  = sum over d of K[key][d] * Qt[d][query]
//   out[d][query]      += sum over keys of V[key][d] * P[key][query]
//
// Operands in bf16 are multiplied by pairs where the processor does so
// (PairProducts). What a product sums over is then the pair's dimension, and
// the first one of the operand that lies across the lanes: Qt[d/2][query]. Keys
// are read as they lie in memory, values from [key/2][d]. Weights, and the
// cotangents of scores, are rounded to bf16.
//
// AttentionTiles.h has the forms of these products by tiles.
#ifndef ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONCODE_H
#define ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONCODE_H

#include "lowering/kernels/attention/AttentionShape.h"
#include "lowering/kernels/attention/AttentionTiles.h"
#include "lowering/kernels/attention/AttentionWalk.h"
#include "lowering/kernels/attention/NextHead.h"
#include <optional>

namespace rota::lowering {

/// Whether kernels of a target with these products multiply by tiles. They then
/// have a last argument, which addTiles adds.
inline bool takesTiles(const AttentionShape &shape, PairProducts products) {
  return areTiles(products) && shape.element.isBF16();
}
inline void addTiles(const AttentionShape &shape, const KernelLibrary &library,
                     KernelCall &call) {
  if (takesTiles(shape, library.getTarget().pairs))
    call.arguments.push_back({KernelArgument::Kind::Tiles, 0});
}
/// Elements of the sums over queries of a head's keys, of `size` each. Tiles
/// add whole blocks.
inline int64_t sumColumns(int64_t size, bool tiles) {
  return tiles ? AttentionTiles::padded(size) : size;
}
inline int64_t sumElements(const AttentionShape &shape, int64_t size,
                           bool tiles) {
  int64_t rows = shape.sequence + (tiles ? AttentionTiles::kBlock : 0);
  return rows * sumColumns(size, tiles);
}
/// Blocks of a head lie on the stack: an error at `op` when it is too large.
llvm::LogicalResult checkHeadSize(mlir::Operation *op,
                                  const AttentionShape &shape);

class AttentionCode {
public:
  AttentionCode(KernelBuilder &k, const AttentionShape &shape);

  /// Writes the code of a kernel, argument number `last` of which would be
  /// tiles.
  void emit(unsigned last, llvm::function_ref<void()> body) {
    return tiles ? tiles->around(last, body) : body();
  }

  /// Queries of a block: two vectors.
  static constexpr int64_t kVectors = 2;
  int64_t queryBlock() const { return kVectors * k.lanes(); }
  int64_t queryBlocks() const {
    return (shape.sequence + queryBlock() - 1) / queryBlock();
  }
  /// Keys of a block.
  static constexpr int64_t kKeyBlock = 32;
  /// Rows of a register block of kVectors vectors each.
  int64_t registerRows() const { return k.lanes() >= 16 ? 8 : 4; }
  /// The size of a row rounded up to whole vectors.
  int64_t padded(int64_t size) const;

  /// Whether products take pairs. Queries are then not scaled when they are
  /// loaded: scaled() does it.
  bool takesPairs() const { return pairs; }
  /// Stack memory of [depth][width] of a product that sums over the first: f32,
  /// or pairs.
  Memory operand(int64_t depth, int64_t width) {
    if (tiles)
      return tiles->panels(depth, width);
    return pairs ? k.local((depth + 1) / 2 * width, k.ops().getI32Type())
                 : k.stack(depth * width);
  }
  /// Stack memory of sums of a block of queries: [size][query], or by tiles
  /// [query][padded size].
  Memory querySums(int64_t size) {
    return k.stack(sumColumns(size, bool(tiles)) * queryBlock());
  }
  void clearSums(Memory sums, int64_t size) {
    fillZero(sums, sumColumns(size, bool(tiles)) * queryBlock());
  }
  /// Sets them to the block of rows from `first` on.
  void loadSums(StridedRows rows, mlir::Value first, Memory sums);
  /// The sums over queries of a kernel row: those of the call's first row in
  /// `all`, so that a cache keeps them from one row to the next.
  StridedRows keySums(Memory all, int64_t size) {
    int64_t elements = sumElements(shape, size, bool(tiles));
    return {k.offset(all, k.mul(k.begin(), elements)),
            sumColumns(size, bool(tiles)), size};
  }
  /// The score of a product of keys and queries.
  mlir::Value scaled(mlir::Value score) {
    return pairs && shape.scale != 1.0f ? k.mulf(score, k.splat(shape.scale))
                                        : score;
  }

  /// The rows [batch, position 0, head] of `memory`, a query, output, key or
  /// value.
  StridedRows queryRows(Memory memory, mlir::Value batch, mlir::Value head) {
    return rowsOf(memory, batch, head, shape.heads, shape.size);
  }
  StridedRows outputRows(Memory memory, mlir::Value batch, mlir::Value head) {
    return rowsOf(memory, batch, head, shape.heads, shape.valueSize);
  }
  StridedRows keyRows(Memory memory, mlir::Value batch, mlir::Value head) {
    return rowsOf(memory, batch, head, shape.keyHeads, shape.size);
  }
  StridedRows valueRows(Memory memory, mlir::Value batch, mlir::Value head) {
    return rowsOf(memory, batch, head, shape.keyHeads, shape.valueSize);
  }

  /// Reads the block of rows from `first` on, times `factor`, as
  /// transposed[d][query] and, if asked for, copy[query][padded size].
  /// Rows beyond the sequence repeat the last one.
  void loadBlock(StridedRows rows, mlir::Value first, float factor,
                 Memory transposed, const Memory *copy);
  /// loadBlock into operands of products; pairs without `factor`.
  void loadOperand(StridedRows rows, mlir::Value first, float factor,
                   Memory transposed, const Memory *copy);
  /// Writes sums * factor[query] to the rows from `first` on that are within
  /// the sequence.
  void storeBlock(Memory sums, llvm::ArrayRef<mlir::Value> factor,
                  StridedRows rows, mlir::Value first);
  /// The form of `count` rows from `first` on that products read by d: f32 in
  /// `space` (kKeyBlock rows of padded size), or the rows themselves when they
  /// are f32 or when products take pairs.
  StridedRows widenRows(StridedRows rows, mlir::Value first, mlir::Value count,
                        Memory space);
  /// The form of such rows that products read by keys: pairs of rows in
  /// `space`, or the rows themselves.
  StridedRows pairRows(StridedRows rows, mlir::Value count, Memory space);

  /// The number of a head among those of all sequences.
  mlir::Value headNumber(mlir::Value batch, mlir::Value head) {
    return k.add(k.mul(batch, shape.heads), head);
  }

  struct Operands {
    Memory query, key, value;
  };
  /// NextHead::set for a head of these and of tensors that have the output's
  /// shape; keysByBlock has the steps.
  void setNextHead(mlir::Value isFirst, mlir::Value isThere, mlir::Value number,
                   const Operands &operands, llvm::ArrayRef<Memory> outputs);
  NextHead &nextHead() { return next; }

  /// Reads where the documents of the queries from `first` on begin. Comes
  /// before keyBlocks(), where there are documents.
  void readDocuments(Memory documents, mlir::Value batch, mlir::Value first);

  /// Calls body(key, count) with the blocks of keys that queries of the block
  /// from `first` on see, `carried` going through.
  using BlockBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value key, mlir::Value count, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value>
  keyBlocks(mlir::Value first, mlir::ValueRange initial, BlockBody body);
  /// Whether the queries see keys of the block at all: there are as many blocks
  /// before the rank's own as the keys are `distance`, or as the number of the
  /// keys' block says.
  mlir::Value seesBlock(Memory position, Memory distance) {
    mlir::Value blocks = k.loadIndex(position, k.i64(0));
    return k.isLess(k.loadIndex(distance, k.i64(0)), k.add(blocks, 1));
  }
  /// The end of the block's queries that are within the sequence.
  mlir::Value queryEnd(mlir::Value first) {
    return k.min(k.add(first, queryBlock()), k.i64(shape.sequence));
  }

  /// Calls body(i, rows, carried) for the groups of `rows` indices below
  /// `count`, the size of a block of keys: groups of `most`, up to kGroup, and,
  /// where the sequence is no multiple of it, one of the rest.
  using GroupBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      mlir::Value i, int64_t rows, mlir::ValueRange carried)>;
  llvm::SmallVector<mlir::Value> keyGroups(mlir::Value count, int64_t most,
                                           mlir::ValueRange initial,
                                           GroupBody body);

  /// sums[r * vectors + v] = initial + sum over i < depth of left(i, r) *
  /// right(i, v), kept in registers.
  llvm::SmallVector<mlir::Value>
  product(int64_t rows, int64_t vectors, mlir::Value depth,
          mlir::ValueRange initial,
          llvm::function_ref<mlir::Value(mlir::Value i, int64_t r)> left,
          llvm::function_ref<mlir::Value(mlir::Value i, int64_t v)> right);

  /// By tiles the products of keysByBlock for all keys < count, which come
  /// before it; else nothing.
  void multiplyKeys(StridedRows keys, mlir::Value count, Memory transposed) {
    if (tiles)
      tiles->multiplyKeys(keys, count, transposed);
  }
  /// product() of rows from widenRows and transposed[d][query], over d.
  llvm::SmallVector<mlir::Value> keysByBlock(StridedRows keys,
                                             mlir::Value first, int64_t rows,
                                             Memory transposed);
  /// sums[d][query] = sums * factor + sum over keys < count of keys[key][d] *
  /// weights[key][query], or the transpose by tiles. A null factor is 1. Keys
  /// are from pairRows, weights from storeByKeys.
  void addWeightedKeys(Memory sums, llvm::ArrayRef<mlir::Value> factor,
                       StridedRows keys, mlir::Value count, Memory weights);
  /// sums[key][d] += sum over the block's queries of weights[key][query] *
  /// values[query][d] (values as copied by loadOperand), for keys < count.
  /// Weights are from storeByQueries.
  void addWeightedQueries(StridedRows sums, mlir::Value count, Memory weights,
                          Memory values);

  /// Memory of the form of weights that products read by queries; the same as
  /// `weights` where those are not pairs.
  Memory byQueries(Memory weights) {
    return pairs ? operand(queryBlock(), kKeyBlock) : weights;
  }
  /// Write the weights, or what else stands in their place, of the keys from
  /// `i` on, a multiple of 2, in the forms that products read by keys and by
  /// queries. `block` has kVectors vectors a key. The second writes nothing
  /// where both are one.
  void storeByKeys(llvm::ArrayRef<mlir::Value> block, mlir::Value i,
                   Memory weights);
  void storeByQueries(llvm::ArrayRef<mlir::Value> block, mlir::Value i,
                      Memory weights);

  /// What maskKey() takes of a vector of queries.
  struct MaskedQueries {
    mlir::Value positions;
    mlir::Value starts; // first keys of their documents; null: no documents
  };
  /// The vectors of the block's queries from `first` on.
  llvm::SmallVector<MaskedQueries> maskedQueries(mlir::Value first);
  /// `score` of key `key`, or `otherwise` in the lanes that do not see it.
  mlir::Value maskKey(mlir::Value score, mlir::Value key,
                      const MaskedQueries &queries, float otherwise);

  /// The score under the soft cap, if there is one. Then stores its derivative,
  /// 1 - tanh^2, at `at` of `bends` if asked for.
  mlir::Value capped(mlir::Value score, const Memory *bends = nullptr,
                     mlir::Value at = {});

  /// Index of [row][vector] in a block-wide matrix.
  mlir::Value blockIndex(mlir::Value row, int64_t addRow, int64_t vector);

  void fillZero(Memory memory, int64_t elements);
  /// Zeroes the rows of the whole sequence.
  void clearRows(StridedRows rows);
  /// Copies them, rounded to the elements of `to`.
  void copyRows(StridedRows from, StridedRows to);
  /// Calls body(d, count) for d in [0, size) by whole vectors, then the rest.
  void sizeChunks(int64_t size, ChunkBody body) {
    forChunks(k, size, k.lanes(), body);
  }

private:
  /// Blocks of keys begin at multiples of this, which divides a block of
  /// queries.
  static constexpr int64_t kGroup = 8;

  /// From a query to the first and the last key that it sees.
  int64_t firstSeen() const { return shape.mask.offset - shape.mask.before; }
  int64_t lastSeen() const { return shape.mask.offset + shape.mask.after; }
  bool isRagged() const { return shape.sequence % queryBlock() != 0; }
  /// Whether a query sees a band of keys that ends on both sides.
  bool isBand() const {
    return shape.mask.limitsBefore() && shape.mask.limitsAfter();
  }
  /// A row of a block of queries, or the sequence's last where it is beyond.
  mlir::Value queryRow(mlir::Value row) {
    return isRagged() ? k.min(row, k.i64(shape.sequence - 1)) : row;
  }
  /// One step of product(), for the depth `i`.
  llvm::SmallVector<mlir::Value>
  addProducts(int64_t rows, int64_t vectors, mlir::Value i,
              mlir::ValueRange sums,
              llvm::function_ref<mlir::Value(mlir::Value i, int64_t r)> left,
              llvm::function_ref<mlir::Value(mlir::Value i, int64_t v)> right);
  /// Writes the pairs of two rows as row `pair` of the operand `space`; of a
  /// null row, zeros.
  void storePairs(StridedRows rows, mlir::Value first, mlir::Value second,
                  Memory space, mlir::Value pair);
  /// The rows of a block of weights, rounded.
  llvm::SmallVector<mlir::Value> roundedRows(llvm::ArrayRef<mlir::Value> block);
  StridedRows rowsOf(Memory memory, mlir::Value batch, mlir::Value head,
                     int64_t heads, int64_t size);

  KernelBuilder &k;
  AttentionShape shape;
  bool pairs;
  std::optional<AttentionTiles> tiles;
  NextHead next;
  Memory starts{}; // i32 [query]; unset without documents
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ATTENTION_ATTENTIONCODE_H
