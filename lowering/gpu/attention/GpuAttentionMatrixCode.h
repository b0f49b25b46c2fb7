// SPDX-License-Identifier: Apache-2.0
//
// The parts that attention's kernels on matrix instructions share. A block of
// threads has queries of one head, or keys of one key head, as its own rows in
// shared memory and walks over tiles of the other rows. Those come by
// asynchronous copies into two stages in turn: one is read while the other is
// written.
#ifndef ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONMATRIXCODE_H
#define ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONMATRIXCODE_H

#include "lowering/gpu/attention/GpuMatrixCode.h"

namespace rota::lowering {

/// The own rows of a block, the rows of a tile (a multiple of 32, or of 16 for
/// heads beyond 128), and the blocks that share the registers of a
/// multiprocessor.
struct MatrixTiling {
  MatrixBlock block;
  int64_t tile, resident;
};

/// A warpgroup reads its own 64 rows from shared memory for each tile: with 32
/// rows a tile takes longer to read than to multiply, with 64 no longer.
inline constexpr int64_t kGroupTile = 64;

class MatrixAttentionCode {
public:
  using Values = GpuMatrixCode::Values;
  using Queries = GpuMatrixCode::Queries;

  MatrixAttentionCode(GpuBuilder &k, const AttentionShape &shape,
                      const MatrixTiling &tiling);

protected:
  /// Two rows of one position: keys and values, or queries and the cotangents
  /// of their outputs.
  struct Sources {
    StridedRows first, second;
  };
  struct Tiles {
    MatrixTile first, second;
  };

  Memory tensor(unsigned i) { return k.argument(i, shape.element); }
  Memory allocateRows(int64_t rows) {
    return k.allocateShared(rows * code.width(), shape.element);
  }
  int64_t ownRows() const { return tiling.block.rows(); }
  MatrixTile allocateOwn() { return {allocateRows(ownRows()), ownRows()}; }
  void startOwn(StridedRows rows, mlir::Value first, MatrixTile to) {
    code.startCopy(rows, first, shape.sequence, to);
  }
  Tiles stageOf(mlir::Value number);
  /// Starts copies of the tile from position `first` on into that stage.
  void startTile(const Sources &rows, mlir::Value first, mlir::Value stage);
  /// Waits for the tile that is in flight; then starts the next one by
  /// start(), where it exists.
  void advance(mlir::Value exists, llvm::function_ref<void()> start);

  /// Starts the first tile of a walk by start(), where it exists. A walk ends
  /// with endWalk(): own rows have then arrived without any tile, too.
  void startFirst(mlir::Value exists, llvm::function_ref<void()> start);
  void endWalk();

  /// Calls `body` with the tiles of keys that the queries from `first` on see,
  /// ascending. The copies of own rows that have been started arrive too.
  using KeyBody = llvm::function_ref<Values(mlir::Value key, Tiles tile,
                                            mlir::ValueRange carried)>;
  Values walkKeys(const Sources &keys, mlir::Value first,
                  mlir::ValueRange initial, KeyBody body);

  /// The values of part number i out of a list with as many for each part.
  mlir::ValueRange ofPart(mlir::ValueRange all, size_t i) const {
    size_t count = all.size() / parts.size();
    return all.slice(i * count, count);
  }

  /// Scores of queries that do not see their key become minus infinity; own
  /// rows begin at `first`, the tile's at `other`. Only tiles at the ends of
  /// the mask have any.
  void maskPartial(GpuMatrixCode &part, Values &scores, mlir::Value first,
                   mlir::Value other, Queries queries);
  /// The same of queries whose document begins after their key.
  void maskDocuments(GpuMatrixCode &part, Values &scores, mlir::Value first,
                     mlir::Value other, Queries queries);
  /// Under a soft cap products become tanh(scale * product / cap).
  void bend(Values &products);

  GpuBuilder &k;
  AttentionShape shape;
  MatrixTiling tiling;
  GpuAttentionBlocks places;
  GpuMatrixCode code;
  std::vector<GpuMatrixCode> parts;
  float unit;        // score = unit * product, or unit * tanh under a cap
  mlir::Value scale; // scale of scores to the base 2
  Memory stages{};
};

/// The kernel that Code(k, shape, tiling).emit() writes, for blocks of `heads`
/// heads, in a form for each unit. Both have the own rows of `tiling`, which is
/// that of warps; `grouped` has the tile and the blocks of the other.
template <typename Code>
llvm::FailureOr<std::string>
emitMatrixKernel(KernelLibrary &library, mlir::Location loc,
                 llvm::StringRef name, const AttentionShape &shape,
                 const MatrixTiling &tiling, MatrixTiling grouped,
                 unsigned arguments, int64_t heads) {
  grouped.block = tiling.block;
  grouped.block.unit = MatrixUnit::Warpgroup;
  return emitAttentionKernel(
      library, loc, name, shape,
      {arguments, heads, tiling.block.rows(), tiling.block.threads()},
      [&](GpuBuilder &k) { Code(k, shape, tiling).emit(); },
      [&](GpuBuilder &k) { Code(k, shape, grouped).emit(); });
}

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_ATTENTION_GPUATTENTIONMATRIXCODE_H
