// SPDX-License-Identifier: Apache-2.0
//
// Products of tiles of 64 x 64 elements by a block of 256 threads, on f32 units
// or, of bf16, on matrix instructions. A product walks over the depth in slices
// that lie in shared memory.
#ifndef ROTA_LOWERING_GPU_EXPERTS_GPUTILEPRODUCT_H
#define ROTA_LOWERING_GPU_EXPERTS_GPUTILEPRODUCT_H

#include "lowering/gpu/GpuBuilder.h"

namespace rota::lowering {

/// A matrix [depth, own], or [own, depth] where `depthLast`, from the tile's
/// first row or column on, of which there are `count` (i64).
struct TileSide {
  Memory from;
  bool depthLast;
  int64_t stride;
  mlir::Value count;
};

/// Rows [low, high) and columns below `columns` of a tile, all i64. Its first
/// element is `to`; rows are `stride` elements apart.
struct TilePlace {
  Memory to;
  int64_t stride;
  mlir::Value low, high, columns;
};

class GpuTileProduct {
public:
  using Values = llvm::SmallVector<mlir::Value>;
  static constexpr int64_t kTile = 64, kThreads = 256;

  virtual ~GpuTileProduct() = default;
  /// Of sides of `element` whose rows have `widths` elements.
  static std::unique_ptr<GpuTileProduct> make(GpuBuilder &k, mlir::Type element,
                                              llvm::ArrayRef<int64_t> widths);

  /// sums + left * right over the depths from `first` to below `end` (i64),
  /// ascending. All threads of the block call it.
  Values multiply(const TileSide &left, const TileSide &right,
                  mlir::Value first, mlir::Value end, mlir::ValueRange sums);
  virtual Values zeros() = 0;
  /// Stores, or adds, this thread's part of a tile.
  virtual void store(mlir::ValueRange sums, const TilePlace &place,
                     bool accumulate) = 0;

protected:
  explicit GpuTileProduct(GpuBuilder &k, int64_t depth, int64_t vector)
      : k(k), depth(depth), vector(vector), thread(k.widen(k.thread())) {}

  /// Row and first element of this thread's vector of a slice.
  std::pair<mlir::Value, mlir::Value> placeInSlice(const TileSide &side);
  /// The vector of a slice that begins at `from`, of depths below `end`; zeros
  /// elsewhere.
  virtual mlir::Value load(const TileSide &side, mlir::Value own,
                           mlir::Value inner, mlir::Value end) = 0;
  virtual void put(const TileSide &side, mlir::Value value, bool isLeft) = 0;
  virtual Values multiplySlices(const TileSide &left, const TileSide &right,
                                mlir::ValueRange sums) = 0;
  mlir::Value fetch(const TileSide &side, mlir::Value from, mlir::Value end);
  static mlir::Value indexOf(GpuBuilder &k, const TileSide &side,
                             mlir::Value own, mlir::Value inner) {
    return side.depthLast ? k.add(k.mul(own, side.stride), inner)
                          : k.add(k.mul(inner, side.stride), own);
  }
  /// Calls body() where the place has `row`.
  void whenRow(const TilePlace &place, mlir::Value row,
               llvm::function_ref<void()> body);
  /// Stores, or adds, a vector or scalar.
  void storeAt(mlir::Value sum, Memory to, mlir::Value at, bool accumulate);

  GpuBuilder &k;
  int64_t depth, vector; // depth of a slice, elements of a thread's vector
  mlir::Value thread;    // i64
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_EXPERTS_GPUTILEPRODUCT_H
