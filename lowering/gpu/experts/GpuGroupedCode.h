// SPDX-License-Identifier: Apache-2.0
//
// The code of products of rows that lie in groups, tile by tile.
#ifndef ROTA_LOWERING_GPU_EXPERTS_GPUGROUPEDCODE_H
#define ROTA_LOWERING_GPU_EXPERTS_GPUGROUPEDCODE_H

#include "lowering/gpu/experts/ExpertTables.h"
#include "lowering/gpu/experts/GpuTileProduct.h"

#include <array>

namespace rota::lowering {

/// `rota.grouped_product` or its derivative, whose right matrix has rows as the
/// left one.
struct GroupedProduct {
  GroupShape shape; // of the left matrix
  int64_t out;
  bool transposed;
  mlir::Type stored; // of the result, or of what it is added to
  bool accumulate;

  std::string key() const;
  bool takesMatrices() const {
    return GpuTileProduct::takesMatrices(shape.element, widths());
  }
  /// Elements of the rows of both matrices.
  std::array<int64_t, 2> widths() const { return {shape.width, out}; }
  TileShape tile(MatrixUnit unit) const {
    return GpuTileProduct::tileOf(shape.element, widths(), out, unit);
  }
  int64_t tileRows() const { return tile(MatrixUnit::Warp).rows; }
  int64_t rowTilesOfBlock() const {
    return llvm::divideCeil(shape.rowsOfBlock(), tileRows());
  }
  int64_t rowTiles() const {
    return shape.batch * shape.blocks * rowTilesOfBlock();
  }
  /// The most tiles of rows that experts have.
  int64_t expertTiles() const { return rowTiles() + shape.experts; }
  int64_t matrixTiles() const {
    return llvm::divideCeil(shape.width, tileRows());
  }
  /// The most of any unit; blocks beyond those of a unit do nothing.
  int64_t columnTiles() const {
    return llvm::divideCeil(out, tile(MatrixUnit::Warp).columns);
  }
};

class GroupedCode {
public:
  static constexpr int64_t kThreads = GpuTileProduct::kThreads;

  GroupedCode(GpuBuilder &k, const GroupedProduct &product, MatrixUnit unit);

  /// Arguments: groups, tiles of experts, rows, matrices, result. A block has a
  /// tile of the rows of one expert in all sequences, and columns; and zeros
  /// for rows without an expert.
  void emitProduct();
  /// Arguments: groups, tiles of experts, left rows, right rows, result. A
  /// block has a part of the matrix of one expert.
  void emitGradient();

private:
  using Values = GpuTileProduct::Values;

  /// The expert that has a tile of that number; beyond all where none has.
  mlir::Value expertOf(const ExpertTiles &experts, mlir::Value tile);
  /// Fills in the numbers of `count` rows (i32) of an expert, from its row
  /// `from` on; beyond its last one that of the last.
  void findRows(TileRows rows, Memory befores, mlir::Value expert,
                mlir::Value from, mlir::Value count);
  /// What a tile of `most` has of `size` numbers, from `from` on; null: all.
  mlir::Value partOf(int64_t size, mlir::Value from, int64_t most);
  /// The number of this block, and the first column of its tile (i64).
  std::pair<mlir::Value, mlir::Value> findColumn();
  void emitTile(const ExpertTiles &experts, mlir::Value number,
                mlir::Value expert, mlir::Value column);
  void clearUnfilled(mlir::Value number, mlir::Value column);
  void emitMatrixTile(const ExpertTiles &experts, mlir::Value expert,
                      mlir::Value row, mlir::Value column);

  GpuBuilder &k;
  const GroupedProduct &product;
  const GroupShape &shape;
  GroupTable groups;
  TileShape tile;
  std::unique_ptr<GpuTileProduct> tiles;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_EXPERTS_GPUGROUPEDCODE_H
