// SPDX-License-Identifier: Apache-2.0
//
// Matrix instructions on bf16 rows in shared memory. A tile is rows of up to
// 256 elements, in panels of 64 columns, one panel after the other. A row of a
// panel is eight chunks of 16 bytes, which are swizzled. Instructions of
// warpgroups know this layout as the swizzle of 128 bytes; tiles begin at
// multiples of 1024 bytes for them. Rows are padded to whole panels; no
// instruction reads the padding beyond a whole fragment, which is zero.
#ifndef ROTA_LOWERING_GPU_ATTENTION_GPUMATRIXCODE_H
#define ROTA_LOWERING_GPU_ATTENTION_GPUMATRIXCODE_H

#include "lowering/gpu/WarpgroupInstructions.h"
#include "lowering/gpu/attention/GpuAttentionBlocks.h"

#include "llvm/Support/MathExtras.h"
#include <memory>
#include <vector>

namespace rota::lowering {

/// The warps of a block, a multiple of four, and the fragments of 16 rows that
/// each has of its own. Warps take fragments in turn, so those of four warps
/// lie side by side.
struct MatrixBlock {
  static constexpr int64_t kFragmentRows = 16;
  int64_t warps, fragments;
  MatrixUnit unit = MatrixUnit::Warp;

  int64_t threads() const { return warps * kWarp; }
  int64_t rows() const { return warps * fragments * kFragmentRows; }
};

class GpuMatrixCode {
public:
  using Values = llvm::SmallVector<mlir::Value>;

  GpuMatrixCode(GpuBuilder &k, int64_t columns, const MatrixBlock &block);

  /// The code of parts of the own rows, one after the other: while one part
  /// computes, products of another run. Warps multiply at once and have one
  /// part, so that all their fragments share what they load of a tile.
  std::vector<GpuMatrixCode> parts() const;

  static bool hasColumns(int64_t columns) {
    return columns % kChunkElements == 0 && columns <= kMostColumns;
  }
  /// Elements of a row of a tile, in all panels.
  int64_t width() const { return llvm::alignTo(columns, kPanelColumns); }
  /// Fragments side by side.
  int64_t steps() const { return llvm::divideCeil(columns, kRows); }

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  /// Starts copies of rows from position `first` (i32) on into a tile; zeros
  /// take the place of rows beyond `sequence`.
  void startCopy(StridedRows rows, mlir::Value first, int64_t sequence,
                 MatrixTile tile);
  /// Starts a copy of `count` f32 from position `first` on, no more than the
  /// block has threads; zeros beyond `sequence`.
  void startLineCopy(Memory line, mlir::Value first, int64_t count,
                     int64_t sequence, Memory to);
  /// Ends a group of copies, of all threads alike.
  void endCopyGroup();
  /// Waits for this thread's copies but those of the last `pending` groups.
  /// After a barrier all threads may multiply what has been copied.
  void waitForCopies(int64_t pending);

  //===--------------------------------------------------------------------===//
  // Products: [16 columns][fragment of own rows], eight f32 each
  //===--------------------------------------------------------------------===//

  /// The lane's row that product element `i` is of, one of laneRows(); and its
  /// column, from the lane's first one on.
  int64_t rowOf(int64_t i) const {
    return i / kFragmentSums % block.fragments * 2 + i / 2 % 2;
  }
  int64_t columnOf(int64_t i) const {
    return i / kFragmentSums / block.fragments * kRows +
           i % kFragmentSums / 4 * 8 + i % 2;
  }
  /// Rows that a lane has elements of, and lanes that share them.
  int64_t laneRows() const { return 2 * block.fragments; }
  static constexpr int64_t kRowLanes = 4;

  /// A product that may still run.
  struct Started {
    Values sums;
    int64_t number;
  };
  /// The own rows times those of the tile.
  Started startDot(MatrixTile own, MatrixTile tile);
  /// sums + weights * tile; weights, as many as a dot has, are rounded.
  Started startAccumulate(llvm::ArrayRef<mlir::Value> weights, MatrixTile tile,
                          Values sums);
  /// The sums of a product, after it and all that were started before it.
  Values finish(Started product);
  /// The sums of these products, one list after the other, when none runs any
  /// more: so a block of code ends.
  Values finishAll(llvm::ArrayRef<Started> products);
  Values zeroSums();

  /// Queries are the rows of scores, or their columns.
  enum class Queries { Rows, Columns };
  /// Scores of queries that do not see their key become minus infinity. The
  /// block's first row is `ahead` (i32) positions after the first column. With
  /// `keys` (i32) given, keys are columns and only so many exist.
  void mask(Values &scores, mlir::Value ahead, Queries queries,
            const mlir::rota::AttentionMask &mask, mlir::Value keys);

  /// Sums that begin with the f32 rows from position `first` on; those beyond
  /// `sequence` with another row.
  Values loadSums(StridedRows rows, mlir::Value first, int64_t sequence);
  /// Writes this warp's rows of sums to the rows from position `first` on that
  /// are within `sequence`: f32 directly, and bf16, rounded, by way of its rows
  /// in `tile`, which the block multiplies no more.
  void storeRows(llvm::ArrayRef<mlir::Value> sums, StridedRows rows,
                 mlir::Value first, int64_t sequence, MatrixTile tile);

  /// The lane's row number `row`, in the block.
  mlir::Value rowInBlock(int64_t row) {
    return k.add(k.add(firstRow, laneRow),
                 rowAfterFirst(row / 2 * kRows) + row % 2 * kSwizzledRows);
  }
  mlir::Value columnOfLane() { return laneColumn; } // 0, 2, 4 or 6

private:
  static constexpr int64_t kRows = 16;        // rows and columns of a fragment
  static constexpr int64_t kFragmentSums = 8; // per product of two fragments
  static constexpr int64_t kChunkElements = 8;
  static constexpr int64_t kPanelColumns = MatrixTile::kPanelColumns;
  static constexpr int64_t kMostColumns = 256;

  using Fragment = MatrixFragment;
  /// The fragment is the left matrix of a product, or two right ones whose
  /// columns are rows of the tile.
  enum class Order { Left, Right };
  /// A lane's addresses of the fragments of a panel, from a row of it on.
  struct Addresses {
    std::array<Memory, kPanelColumns / kRows> steps;
    int64_t panel; // elements
  };
  Addresses addressesOf(MatrixTile tile, Order order,
                        mlir::Value firstRow = {});
  /// The fragment of 16 rows from `row` on and 16 columns from 16 `step` on. In
  /// order Left and transposed it is two right matrices, of eight columns each.
  Fragment load(const Addresses &tile, int64_t row, int64_t step,
                bool transposed = false);
  /// Own weights as left matrices: those of 16 of their columns.
  llvm::SmallVector<Fragment> leftOf(llvm::ArrayRef<mlir::Value> weights,
                                     int64_t step);

  /// The first own row of the warpgroup, if not 0; i32.
  mlir::Value groupRow();
  /// Both products by warps, and by warpgroups, of one fragment.
  Values dotOfWarps(MatrixTile own, MatrixTile tile);
  void accumulateOfWarps(llvm::ArrayRef<mlir::Value> weights, MatrixTile tile,
                         Values &sums);
  Values startDotOfGroup(MatrixTile own, MatrixTile tile);
  void startAccumulateOfGroup(llvm::ArrayRef<mlir::Value> weights,
                              MatrixTile tile, Values &sums);

  int64_t chunks() const { return columns / kChunkElements; }
  /// Threads that share a row: a power of two, some of them idle. All of a
  /// block have 32 rows or fewer, and 8 of the widest.
  int64_t threadsOfRow() const {
    return std::max<int64_t>(llvm::PowerOf2Ceil(2 * steps()), block.warps);
  }
  /// Calls `body` where `chunk` is below `count`.
  void whenChunk(mlir::Value chunk, int64_t count,
                 llvm::function_ref<void()> body);
  /// The element of a tile where a chunk of a row begins; all i32.
  mlir::Value swizzled(MatrixTile tile, mlir::Value row, mlir::Value chunk);
  /// The warp's row number `row`, after its first one, in the block.
  int64_t rowAfterFirst(int64_t row) const {
    return row / kRows * kRows * block.warps + row % kRows;
  }
  mlir::Value positionIndex(mlir::Value position, int64_t stride,
                            mlir::Value chunk);
  /// The first of the sums of 16 columns and one fragment of own rows.
  int64_t sumsAt(int64_t step, int64_t fragment) const {
    return (step * block.fragments + fragment) * kFragmentSums;
  }
  /// Calls body(i, position, column) for the even sums i, of the lane's
  /// position in rows from `first` on and of that column and the next.
  void eachPair(mlir::Value first,
                llvm::function_ref<void(int64_t i, mlir::Value position,
                                        mlir::Value column)>
                    body);
  /// Two f32 in one register, rounded.
  mlir::Value pack(mlir::Value low, mlir::Value high);

  GpuBuilder &k;
  int64_t columns;
  MatrixBlock block;
  mlir::Value thread, warp, lane, laneRow, laneColumn; // i32
  mlir::Value firstRow;                                // of the warp, i32
  int64_t partRow = 0;                                 // of all warps
  std::shared_ptr<int64_t> started = std::make_shared<int64_t>(0); // products
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ATTENTION_GPUMATRIXCODE_H
