// SPDX-License-Identifier: Apache-2.0
//
// Products of square tiles by a block of 256 threads, on f32 units or, of bf16,
// on matrix instructions. A product walks over the depth in slices that lie in
// shared memory.
#ifndef ROTA_LOWERING_GPU_EXPERTS_GPUTILEPRODUCT_H
#define ROTA_LOWERING_GPU_EXPERTS_GPUTILEPRODUCT_H

#include "lowering/gpu/GpuBuilder.h"

namespace rota::lowering {

/// The numbers of a tile's rows in their matrix, i32 in shared memory; a null
/// base where they ascend from the tile's first one on.
using TileRows = Memory;

/// A matrix [depth, own], or [own, depth] where `depthLast`, from the tile's
/// first row or column on. The product reads and needs those below `count`,
/// i64.
struct TileSide {
  Memory from;
  bool depthLast;
  int64_t stride;
  mlir::Value count;
  TileRows rows = {}; // where the depth is last; also of those beyond the count
};

/// Rows [low, high) and columns below `columns` of a tile, all i64. Its first
/// element is `to`; rows are `stride` elements apart.
struct TilePlace {
  Memory to;
  int64_t stride;
  mlir::Value low, high, columns;
  TileRows rows = {};
};

class GpuTileProduct {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  static constexpr int64_t kThreads = 256;

  virtual ~GpuTileProduct() = default;
  /// A product of sides of `element` whose rows have `widths` elements.
  static std::unique_ptr<GpuTileProduct> make(GpuBuilder &k, mlir::Type element,
                                              llvm::ArrayRef<int64_t> widths);
  /// The rows, and the columns, of a tile of that product.
  static int64_t tileOf(mlir::Type element, llvm::ArrayRef<int64_t> widths);

  /// Depths of a range, an i64 number: the first one and the end, both i64.
  using DepthsOf = llvm::function_ref<std::pair<mlir::Value, mlir::Value>(
      mlir::Value range)>;
  /// Left and right, at depth 0. Those of two ranges differ in `from` alone.
  using SidesOf =
      llvm::function_ref<std::pair<TileSide, TileSide>(mlir::Value range)>;
  /// sums + left * right over the depths of ranges 0 to `ranges` - 1, all
  /// ascending. All threads of the block call it, and wait for each other
  /// before they read the numbers of rows.
  virtual Values multiply(int64_t ranges, DepthsOf depthsOf, SidesOf sidesOf,
                          mlir::ValueRange sums) = 0;
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
