// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles of bf16 on matrix instructions, whose slices come by
// cp.async while the slices before them are multiplied.
#ifndef ROTA_LOWERING_GPU_EXPERTS_GPUMATRIXPRODUCT_H
#define ROTA_LOWERING_GPU_EXPERTS_GPUMATRIXPRODUCT_H

#include "lowering/gpu/experts/GpuTileProduct.h"

namespace rota::lowering {

/// A tile has 128 rows. Warps have 64 x 32 elements each, 2 x 4 of them, and
/// warpgroups 64 rows and all columns: 128, or 256, for which the caches are
/// read less. A slice lies as its matrix does, [own][depth] or [depth][own], as
/// a MatrixTile.
class MatrixProduct : public GpuTileProduct {
public:
  static constexpr int64_t kTile = 128, kWideTile = 256;
  static constexpr int64_t kVector = 8; // elements of a chunk

  MatrixProduct(GpuBuilder &k, const TileShape &tile, MatrixUnit unit);

  Values multiply(const TileSide &left, const TileSide &right,
                  mlir::Value depths, mlir::ValueRange sums) override;
  Values zeros() override {
    return Values(fragmentsDown * fragmentsAcross * kFragmentSums, k.f32(0.0f));
  }
  void store(mlir::ValueRange sums, const TilePlace &place,
             bool accumulate) override;

private:
  static constexpr int64_t kDepth = 64;
  static constexpr int64_t kRows = 16;        // of a fragment
  static constexpr int64_t kFragmentSums = 8; // in a thread

  /// The first of a thread's sums of 16 rows and 16 columns.
  int64_t sumsAt(int64_t down, int64_t across) const {
    return (down * fragmentsAcross + across) * kFragmentSums;
  }
  /// The slices of a stage (i32).
  struct Slices {
    MatrixTile left, right;
  };
  Slices slicesOf(mlir::Value stage, const TileSide &left,
                  const TileSide &right);

  /// What this thread copies of each slice: a chunk of `row`, and of those
  /// `apart` rows further, of `count` in all.
  struct Share {
    const TileSide &side;
    mlir::Value row, chunk;
    int64_t apart, count;
    /// The chunk in memory: of `row`, or of each row where the side's own rows
    /// have numbers; none where depths have.
    llvm::SmallVector<Memory> lines;
  };
  Share shareOf(const TileSide &side, int64_t own);
  /// The chunks of slice `number` (i32) in memory.
  llvm::SmallVector<Memory> sourcesOf(const Share &share, mlir::Value number);
  /// Starts the copies of that slice. Zeros take the place of what the side
  /// does not have, and of depths beyond `depths` (i32, null: none are).
  void startCopy(const Share &share, mlir::Value number, mlir::Value depths,
                 MatrixTile to);

  /// The element of a slice where this lane's row of the first fragment of its
  /// warp begins; i32.
  mlir::Value laneElement(const TileSide &side, MatrixTile slice, bool isLeft);
  /// Fragment `own` of the warp, at depth 16 `step`.
  MatrixFragment load(const TileSide &side, MatrixTile slice,
                      mlir::Value element, int64_t own, int64_t step);
  Values multiplyByWarps(const TileSide &left, const TileSide &right,
                         Slices slices, mlir::ValueRange sums);
  /// Sums that are left alone until the product has been waited for.
  Values startByGroups(const TileSide &left, const TileSide &right,
                       Slices slices, mlir::ValueRange sums);
  /// Whether sums of this warp are needed.
  mlir::Value isNeeded(const TileSide &left, const TileSide &right);

  /// Calls body(row, half) where this thread has sums of that row of the tile,
  /// for each `half` of its fragments' rows.
  void eachRow(const TilePlace &place,
               llvm::function_ref<void(mlir::Value row, int64_t half)> body);
  /// The two sums of `part`, eight columns, in `half`.
  mlir::Value pairOfSums(mlir::ValueRange sums, int64_t half, int64_t part);
  void storeDirectly(mlir::ValueRange sums, const TilePlace &place,
                     bool accumulate);
  /// Stores bf16 by way of shared memory, by whole accesses.
  void storeByRows(mlir::ValueRange sums, const TilePlace &place);

  TileShape tile;
  MatrixUnit unit;
  bool runsOn; // a product into the next turn
  int64_t stageCount;
  int64_t fragmentsDown, fragmentsAcross; // of a warp
  mlir::Value thread, lane, down, across; // i32
  Memory stages;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_EXPERTS_GPUMATRIXPRODUCT_H
