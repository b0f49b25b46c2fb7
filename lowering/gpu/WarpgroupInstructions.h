// SPDX-License-Identifier: Apache-2.0
//
// wgmma of bf16, which sm_90a alone has: four warps multiply 64 rows with a
// tile in shared memory. Warp w of a group has rows 16 w to 16 w + 15; what its
// lanes hold of them is as in MatrixInstructions.h.
#ifndef ROTA_LOWERING_GPU_WARPGROUPINSTRUCTIONS_H
#define ROTA_LOWERING_GPU_WARPGROUPINSTRUCTIONS_H

#include "lowering/gpu/MatrixInstructions.h"

namespace rota::lowering {

/// Whether a warp multiplies, with mma.sync, or four together, with wgmma.
enum class MatrixUnit { Warp, Warpgroup };

/// Warps, and rows of a product, of a warpgroup.
inline constexpr int64_t kGroupWarps = 4, kGroupRows = 64;

/// The number of this thread's warpgroup (i32), which the compiler sees to be
/// one for all lanes.
mlir::Value groupOfThread(GpuBuilder &k);

/// Rows of bf16 in shared memory, in panels of 64 columns, one panel after the
/// other, each with the swizzle of 128 bytes.
struct MatrixTile {
  static constexpr int64_t kPanelColumns = 64;
  Memory memory;
  int64_t rows;

  static constexpr int64_t rowBytes() { return 2 * kPanelColumns; }
  int64_t panelBytes() const { return rows * rowBytes(); }
  /// Bytes from the tile's begin to a multiple of 8 rows and of 16 columns.
  int64_t offsetOf(int64_t row, int64_t column) const {
    return column / kPanelColumns * panelBytes() + row * rowBytes() +
           column % kPanelColumns * 2;
  }
};

/// The element of a tile where chunk `chunk` of 16 bytes of a row begins; all
/// i32. Without `hasPanels` the tile is one panel.
mlir::Value swizzledElement(GpuBuilder &k, MatrixTile tile, mlir::Value row,
                            mlir::Value chunk, bool hasPanels = true);

/// The descriptor (i64) of the tile from a row on, a multiple of 8 (i32; null:
/// 0), that is one for all lanes.
mlir::Value describeTile(GpuBuilder &k, MatrixTile tile, mlir::Value row = {});

/// The sums of 64 rows and of all columns of a product, and what is added.
struct WarpgroupSums {
  using Values = llvm::SmallVector<mlir::Value>;
  /// left * right, of a depth of 16. The left one is a descriptor or a fragment
  /// in four registers (i32).
  struct Step {
    Values left;
    mlir::Value right;
    int64_t leftOffset, rightOffset; // bytes from what descriptors say
  };
  llvm::SmallVector<Step> steps;
  /// Eight f32 for each 16 columns; none: they begin with zero.
  Values sums;
};

/// The matrices of a product that lie by depth: rows of their tile are the
/// depth, otherwise the rows of the left matrix, or columns of the right one.
struct ByDepth {
  bool left, right;
};

/// Starts a product, a group of its own, of `columns`. The sums, and the tiles,
/// are left alone until the product has been waited for.
void startOfWarpgroup(GpuBuilder &k, WarpgroupSums &product, int64_t columns,
                      ByDepth byDepth);
/// Waits for all products but the last `pending` ones. `sums` are those of one
/// that was waited for, if any, and may be used from here on.
void waitForWarpgroup(GpuBuilder &k, int64_t pending,
                      llvm::MutableArrayRef<mlir::Value> sums);

/// Lets instructions of warpgroups see what this thread has written to shared
/// memory, after the next barrier.
void showWarpgroups(GpuBuilder &k);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_WARPGROUPINSTRUCTIONS_H
