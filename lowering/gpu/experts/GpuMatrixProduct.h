// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles of bf16 on matrix instructions, whose slices come by
// cp.async while the slices before them are multiplied.
#ifndef ROTA_LOWERING_GPU_EXPERTS_GPUMATRIXPRODUCT_H
#define ROTA_LOWERING_GPU_EXPERTS_GPUMATRIXPRODUCT_H

#include "lowering/gpu/MatrixInstructions.h"
#include "lowering/gpu/experts/GpuTileProduct.h"

namespace rota::lowering {

/// 2 x 4 warps with 64 x 32 elements each. A slice lies as its matrix does,
/// [own][depth] or [depth][own], with its chunks swizzled.
class MatrixProduct : public GpuTileProduct {
public:
  static constexpr int64_t kTile = 128;
  static constexpr int64_t kVector = 8; // elements of a chunk

  explicit MatrixProduct(GpuBuilder &k);

  Values multiply(int64_t ranges, DepthsOf depthsOf, SidesOf sidesOf,
                  mlir::ValueRange sums) override;
  Values zeros() override { return Values(sumsAt(kDown, 0), k.f32(0.0f)); }
  void store(mlir::ValueRange sums, const TilePlace &place,
             bool accumulate) override;

private:
  static constexpr int64_t kDepth = 64, kStages = 3;
  static constexpr int64_t kSliceElements = kTile * kDepth; // of a side
  static constexpr int64_t kRows = 16;                      // of a fragment
  static constexpr int64_t kDown = 4, kAcross = 2; // fragments of a warp
  static constexpr int64_t kWarpsAcross = kTile / (kAcross * kRows);
  static constexpr int64_t kFragmentSums = 8; // in a thread

  static int64_t rowElements(const TileSide &side) {
    return side.depthLast ? kDepth : kTile;
  }
  /// The first of a thread's sums of 16 rows and 16 columns.
  static int64_t sumsAt(int64_t down, int64_t across) {
    return (down * kAcross + across) * kFragmentSums;
  }
  /// The element of a slice where a chunk of a row begins; all i32.
  mlir::Value swizzled(const TileSide &side, mlir::Value row,
                       mlir::Value chunk);
  /// The slices of a stage (i32): left, right.
  std::pair<Memory, Memory> slicesOf(mlir::Value stage);

  /// The depths from `from` on that are multiplied next, and what comes after
  /// them: the range that ends at `end`, then the next one. All i32 but
  /// `range`, which is i64.
  struct Walk {
    mlir::Value range, from, end, nextFirst, nextEnd;
    Values values() const { return {range, from, end, nextFirst, nextEnd}; }
  };
  Walk begin(int64_t ranges, DepthsOf depthsOf);
  Walk advance(const Walk &walk, int64_t ranges, DepthsOf depthsOf);
  /// Slices of all ranges (i32), at least one of each.
  mlir::Value countSlices(int64_t ranges, DepthsOf depthsOf);

  /// Starts this thread's copies of a slice from depth `from` on; zeros take
  /// the place of what the side does not have, and of depths from `end` on.
  void startCopy(const TileSide &side, mlir::Value from, mlir::Value end,
                 Memory slice);
  /// The element of a slice where this lane's row of the first fragment of its
  /// warp begins; i32.
  mlir::Value laneElement(const TileSide &side, bool isLeft);
  /// Fragment `own` of the warp, at depth 16 `step`.
  MatrixFragment load(const TileSide &side, Memory slice, mlir::Value element,
                      int64_t own, int64_t step);
  Values multiplySlices(const TileSide &left, const TileSide &right,
                        mlir::Value stage, mlir::ValueRange sums);
  /// Whether sums of this warp are needed.
  mlir::Value isNeeded(const TileSide &left, const TileSide &right);

  mlir::Value thread, lane, down, across; // i32
  Memory stages;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_EXPERTS_GPUMATRIXPRODUCT_H
