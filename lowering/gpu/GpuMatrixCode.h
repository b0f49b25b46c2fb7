// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions of warps on bf16 rows in shared memory. A tile is rows of
// 64 or 128 elements, in chunks of 16 bytes: chunk c of row r lies at chunk
// c ^ (r % 8), so that neither eight rows of one chunk nor eight chunks of one
// row share a bank.
//
// A fragment is what the 32 lanes of a warp hold of a matrix of 16 rows: lane l
// has elements 2 (l % 4) and the next of rows l / 4 and l / 4 + 8.
#ifndef ROTA_LOWERING_GPU_GPUMATRIXCODE_H
#define ROTA_LOWERING_GPU_GPUMATRIXCODE_H

#include "lowering/gpu/GpuAttentionCode.h"

#include <array>

namespace rota::lowering {

class GpuMatrixCode {
public:
  /// For blocks of `threads` threads, whose warps each have kRows rows of their
  /// own.
  GpuMatrixCode(GpuBuilder &k, int64_t columns, int64_t threads);

  static constexpr int64_t kRows = 16; // of a fragment; and its columns
  static bool hasColumns(int64_t columns) {
    return columns == 64 || columns == 128;
  }

  /// Starts copies of `count` rows from position `first` (i32) on into a tile;
  /// zeros take the place of rows beyond `sequence`.
  void startCopy(HeadRows rows, mlir::Value first, int64_t count,
                 int64_t sequence, Memory tile);
  /// Ends a group of copies, of all threads alike.
  void endCopyGroup();
  /// Waits for this thread's copies but those of the last `pending` groups.
  void waitForCopies(int64_t pending);

  /// Four registers (i32) of two bf16 each.
  using Fragment = std::array<mlir::Value, 4>;
  /// The fragment is the left matrix of a product, or two right ones whose
  /// columns are rows of the tile.
  enum class Order { Left, Right };
  /// A lane's addresses of fragments of a tile.
  using Addresses = std::array<Memory, 4>;
  Addresses addressesOf(Memory tile, Order order);
  /// The fragment of 16 rows from `row` on and 16 columns from 16 `step` on. In
  /// order Left and transposed it is two right matrices, of eight columns each.
  Fragment load(const Addresses &tile, int64_t row, int64_t step,
                bool transposed = false);

  /// Four f32: two of each row.
  using Sums = llvm::MutableArrayRef<mlir::Value>;
  /// sums += left * right, on 16 x 8 sums; half 0 or 1 of a right fragment.
  void multiplyAdd(const Fragment &left, const Fragment &right, int64_t half,
                   Sums sums);
  /// Two f32 in one register, rounded.
  mlir::Value pack(mlir::Value low, mlir::Value high);

  /// Writes this warp's 16 rows of 16 x 8 sums, rounded, to the rows from
  /// position `first` on that are within `sequence`, by way of its rows in
  /// `tile`.
  void storeRows(llvm::ArrayRef<mlir::Value> sums, HeadRows rows,
                 mlir::Value first, int64_t sequence, Memory tile);

  /// The warp's own rows of a tile.
  Memory ownRows(Memory tile);
  mlir::Value warpNumber() { return warp; }
  mlir::Value rowOfLane() { return laneRow; }       // in 0 .. 7
  mlir::Value columnOfLane() { return laneColumn; } // 0, 2, 4 or 6

private:
  static constexpr int64_t kChunkElements = 8, kSwizzledRows = 8;

  int64_t chunks() const { return columns / kChunkElements; }
  /// The element where a chunk of a row begins; all i32.
  mlir::Value swizzled(mlir::Value row, mlir::Value chunk);
  mlir::Value positionIndex(mlir::Value position, int64_t stride,
                            mlir::Value chunk);

  GpuBuilder &k;
  int64_t columns, threads;
  mlir::Value thread, warp, lane, laneRow, laneColumn; // i32
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_GPUMATRIXCODE_H
