// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles by a block of 256 threads, on f32 units or, of bf16,
// on matrix instructions. A product walks over the depth in slices that lie in
// shared memory.
#ifndef ROTA_LOWERING_GPU_EXPERTS_GPUTILEPRODUCT_H
#define ROTA_LOWERING_GPU_EXPERTS_GPUTILEPRODUCT_H

#include "lowering/gpu/WarpgroupInstructions.h"

namespace rota::lowering {

/// The numbers of rows in their matrix, i32 in shared memory; a null base where
/// they ascend from the tile's first one on.
using TileRows = Memory;

/// A matrix [depth, own], or [own, depth] where `depthLast`, from the tile's
/// first row or column on. The product needs those below `count`, i64; null:
/// all of the tile exist. Numbers are those of a whole tile's rows, or of
/// depths, then equal on both sides and in slices of kMostDepth.
struct TileSide {
  Memory from;
  bool depthLast;
  int64_t stride;
  mlir::Value count;
  TileRows rows = {};
};

/// Rows [low, high) and columns below `columns` of a tile, all i64; no columns:
/// all of the tile. Its first element is `to`; rows are `stride` elements
/// apart.
struct TilePlace {
  Memory to;
  int64_t stride;
  mlir::Value low, high, columns;
  TileRows rows = {};
};

struct TileShape {
  int64_t rows, columns;
};

class GpuTileProduct {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  static constexpr int64_t kThreads = 256;
  /// Depths of the largest slice.
  static constexpr int64_t kMostDepth = 64;

  virtual ~GpuTileProduct() = default;
  /// A product of sides of `element` whose rows have `widths` elements, the
  /// result's `columns`.
  static std::unique_ptr<GpuTileProduct> make(GpuBuilder &k, mlir::Type element,
                                              llvm::ArrayRef<int64_t> widths,
                                              int64_t columns, MatrixUnit unit);
  /// Whether such a product is done by matrix instructions.
  static bool takesMatrices(mlir::Type element, llvm::ArrayRef<int64_t> widths);
  /// A tile of that product. Rows do not depend on the unit, and warps have no
  /// more columns than others.
  static TileShape tileOf(mlir::Type element, llvm::ArrayRef<int64_t> widths,
                          int64_t columns, MatrixUnit unit);

  /// sums + left * right over `depths` (i64), ascending. All threads of the
  /// block call it, and wait for each other before they read the numbers of
  /// rows.
  virtual Values multiply(const TileSide &left, const TileSide &right,
                          mlir::Value depths, mlir::ValueRange sums) = 0;
  virtual Values zeros() = 0;
  /// Stores, or adds, this thread's part of a tile.
  virtual void store(mlir::ValueRange sums, const TilePlace &place,
                     bool accumulate) = 0;

protected:
  explicit GpuTileProduct(GpuBuilder &k) : k(k) {}

  /// The number (i64) of row `row` of a tile in its matrix.
  mlir::Value rowNumber(TileRows rows, mlir::Value row) {
    return k.widen(rows.base ? k.load(rows, row) : row);
  }
  /// Stores, or adds, a vector or scalar.
  void storeAt(mlir::Value sum, Memory to, mlir::Value at, bool accumulate);

  GpuBuilder &k;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_EXPERTS_GPUTILEPRODUCT_H
