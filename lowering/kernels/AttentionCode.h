// SPDX-License-Identifier: Apache-2.0
//
// The pieces that attention's forward and backward kernels are made of. Queries
// are taken in blocks of two vectors and lie across the lanes: scores, their
// maxima and sums are then vertical, and every product is a broadcast element
// times a vector.
//
//   scores[key][query]  = sum over d of K[key][d] * Qt[d][query]
//   out[d][query]      += sum over keys of V[key][d] * P[key][query]
#ifndef ROTA_LOWERING_KERNELS_ATTENTIONCODE_H
#define ROTA_LOWERING_KERNELS_ATTENTIONCODE_H

#include "lowering/kernels/KernelBuilder.h"
#include <string>

namespace rota::lowering {

/// q is [batch, sequence, heads, size], k and v [batch, sequence, keyHeads,
/// size].
struct AttentionShape {
  int64_t batch, sequence, heads, keyHeads, size;
  float scale;
  mlir::Type element;

  int64_t group() const { return heads / keyHeads; }
  int64_t queryStride() const { return heads * size; }
  int64_t keyStride() const { return keyHeads * size; }
};

/// The shape of an op with these operands, and a text that determines it.
AttentionShape attentionShape(mlir::Value query, mlir::Value key,
                              const llvm::APFloat &scale);
std::string toString(const AttentionShape &shape);
/// Blocks of a head lie on the stack: an error at `op` when it is too large.
llvm::LogicalResult checkHeadSize(mlir::Operation *op,
                                  const AttentionShape &shape);

/// An error at an op whose form has no kernels yet.
template <typename Op> llvm::LogicalResult checkPlainForm(Op op) {
  if (!op.getWindow() && !op.getSoftCap() && !op.getBidirectional() &&
      !op.getSinks() && op.getValue().getType() == op.getKey().getType())
    return mlir::success();
  return op->emitOpError("has no kernel with a window, a soft cap, sinks, both "
                         "directions or values of another size");
}

/// Rows `stride` elements apart.
struct StridedRows {
  Memory memory;
  int64_t stride;
};

class AttentionCode {
public:
  AttentionCode(KernelBuilder &k, const AttentionShape &shape);

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
  /// The head's size rounded up to whole vectors.
  int64_t paddedSize() const;

  /// The rows [batch, position 0, head] of `memory`.
  StridedRows queryRows(Memory memory, mlir::Value batch, mlir::Value head);
  StridedRows keyRows(Memory memory, mlir::Value batch, mlir::Value head);

  /// Reads the block of rows from `first` on, times `factor`, as
  /// transposed[d][query] and, if asked for, copy[query][paddedSize].
  /// Rows beyond the sequence repeat the last one.
  void loadBlock(StridedRows rows, mlir::Value first, float factor,
                 Memory transposed, const Memory *copy);
  /// Writes transposed[d][query] * factor[query] to the rows from `first` on
  /// that are within the sequence.
  void storeBlock(Memory transposed, llvm::ArrayRef<mlir::Value> factor,
                  StridedRows rows, mlir::Value first);
  /// The f32 form of `count` rows from `first` on: `space` (kKeyBlock rows of
  /// paddedSize), or the rows themselves when they are f32.
  StridedRows widenRows(StridedRows rows, mlir::Value first, mlir::Value count,
                        Memory space);

  /// Calls body(i, rows, carried) for the groups of `rows` indices below
  /// `count`: groups of `most` and, where the sequence is no multiple of it,
  /// one of the rest.
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

  /// product() of key rows and transposed[d][query], over d.
  llvm::SmallVector<mlir::Value> keysByBlock(StridedRows keys,
                                             mlir::Value first, int64_t rows,
                                             Memory transposed);
  /// sums[d][query] = sums * factor + sum over keys < count of keys[key][d] *
  /// weights[key][query]. A null factor is 1.
  void addWeightedKeys(Memory sums, llvm::ArrayRef<mlir::Value> factor,
                       StridedRows keys, mlir::Value count, Memory weights);
  /// sums[key][d] += sum over the block's queries of weights[key][query] *
  /// values[query][d] (values as copied by loadBlock), for keys < count.
  void addWeightedQueries(StridedRows sums, mlir::Value count, Memory weights,
                          Memory values);

  /// `score` of key `key`, or `otherwise` in the lanes that must not see it.
  mlir::Value maskKey(mlir::Value score, mlir::Value key, mlir::Value queries,
                      float otherwise);

  /// Index of [row][vector] in a block-wide matrix.
  mlir::Value blockIndex(mlir::Value row, int64_t addRow, int64_t vector);

  void fillZero(Memory memory, int64_t elements);
  /// Calls body(d, count) for d in [0, size) by whole vectors, then the rest.
  void sizeChunks(llvm::function_ref<void(mlir::Value d, int64_t count)> body);

private:
  bool isRagged() const { return shape.sequence % queryBlock() != 0; }

  KernelBuilder &k;
  AttentionShape shape;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ATTENTIONCODE_H
