// SPDX-License-Identifier: Apache-2.0
//
// The pieces that attention's kernels on a GPU's f32 units are made of. A block
// of threads owns some rows of one head (queries, or keys in the derivative of
// keys and values) and walks over tiles of the other rows. Its 256 threads are
// 16 x 16: a thread has some neighbouring own rows and, of those, every 16th
// weight or every 16th group of four columns.
//
//   weights[own][other] = sum over d of A[own][d] * B[other][d]
//   sums[own][d]       += sum over other of weights[own][other] * C[other][d]
#ifndef ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONCODE_H
#define ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONCODE_H

#include "lowering/gpu/attention/GpuAttentionBlocks.h"

namespace rota::lowering {

/// Rows of one block and of one tile that it walks over: multiples of 16.
struct AttentionBlock {
  int64_t own, other;
};

/// f32 rows of `size` elements in shared memory, each padded to whole vectors
/// of four. Strides are an odd number of vectors, so that eight threads that
/// read one vector of eight neighbouring rows each meet eight different banks.
struct SharedTile {
  Memory memory;
  int64_t rows, stride, size;
};

class GpuAttentionCode : public GpuAttentionBlocks {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  static constexpr int64_t kAcross = 16, kDown = 16;
  static constexpr int64_t kThreads = kAcross * kDown;
  /// The largest head whose sums fit in registers.
  static constexpr int64_t kMostSize = 256;

  GpuAttentionCode(GpuBuilder &k, const AttentionShape &shape,
                   AttentionBlock block);

  const AttentionBlock &block() const { return blockRows; }
  int64_t rowsDown() const { return blockRows.own / kDown; }
  int64_t rowsAcross() const { return blockRows.other / kAcross; }
  /// Vectors of four columns that a thread has of a row of `size`.
  static int64_t vectorsAcross(int64_t size);

  /// A tile for rows of a head; all threads of the block call it once.
  SharedTile allocateRows(int64_t rows, int64_t size);
  /// A tile for weights[own][other].
  SharedTile allocateWeights();

  /// This thread's share of the `count` rows from `first` on, times `factor`.
  /// Rows beyond the sequence are others of it.
  Values fetch(StridedRows rows, mlir::Value first, int64_t count,
               float factor = 1.0f);
  /// Writes the share that fetch() has read. Barriers are up to the caller.
  void put(const Values &share, SharedTile tile);

  /// The thread's weights [rowsDown][rowsAcross], d ascending.
  Values dot(SharedTile own, SharedTile other);
  void putWeights(const Values &weights, SharedTile tile);
  /// sums + weights * other, rows of `other` ascending; sums are vectors of
  /// four, [rowsDown][vectorsAcross of other's size]. Threads of a warp read
  /// what the same threads have written.
  Values accumulate(SharedTile weights, SharedTile other,
                    mlir::ValueRange sums);
  Values zeroSums(int64_t size);
  /// The thread's sums where they begin with the f32 rows from `first` on. Rows
  /// and columns that it has none of are others.
  Values loadSums(StridedRows rows, mlir::Value first);
  mlir::Value scaled(mlir::Value sum, mlir::Value factor) {
    return k.mulf(sum, k.splat(factor, kVector));
  }
  /// Writes sums * factor[own row] to the rows from `first` on that are within
  /// the sequence.
  void storeRows(mlir::ValueRange sums, const Values &factor, StridedRows rows,
                 mlir::Value first);

  /// Positions (i32) of the thread's own rows and of those across.
  mlir::Value ownPosition(mlir::Value first, int64_t i);
  mlir::Value otherPosition(mlir::Value first, int64_t j);
  /// Whether a position is within the sequence; null: all positions are, where
  /// blocks of `rows` rows begin at multiples of it.
  mlir::Value inSequence(mlir::Value position, int64_t rows);
  /// Whether the query, whose document has the first key `start` if there are
  /// documents, sees the key of a tile; null: it sees every key.
  mlir::Value sees(mlir::Value query, mlir::Value key, mlir::Value start);
  /// `visible`, and whether the key is not before `start`. Either may be null.
  mlir::Value inDocument(mlir::Value visible, mlir::Value key,
                         mlir::Value start);

  /// The factor of the own rows of a product of queries and keys.
  float productScale() const;
  /// A score to the base 2 of such a product, and the derivative of a soft cap;
  /// null without one.
  struct Score {
    mlir::Value value, slope;
  };
  Score scoreOf(mlir::Value product);

  /// Number of the thread in its 16: the first of them writes what all have.
  mlir::Value acrossNumber() { return across; }

  void warpBarrier();

private:
  static constexpr int64_t kVector = 4;

  /// Row and first column (i32) of the thread's access number `i` of a tile of
  /// rows of `size`.
  struct Access {
    mlir::Value row, column;
  };
  Access accessOf(int64_t i, int64_t size);

  static int64_t padded(int64_t size);
  static int64_t vectors(int64_t size) { return padded(size) / kVector; }
  /// Elements of one access of global memory.
  int64_t accessWidth(int64_t size) const;
  mlir::Value index(mlir::Value position, int64_t stride, mlir::Value column);
  Memory ownRows(SharedTile tile);

  AttentionBlock blockRows;
  mlir::Value thread, down, across; // i32
};

/// An error at `op` where the GPU has no kernel for the head's size.
llvm::LogicalResult checkGpuHeadSize(mlir::Operation *op,
                                     const AttentionShape &shape);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONCODE_H
