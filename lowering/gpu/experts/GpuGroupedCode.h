// SPDX-License-Identifier: Apache-2.0
//
// The code of products of rows that lie in groups, tile by tile.
#ifndef ROTA_LOWERING_GPU_EXPERTS_GPUGROUPEDCODE_H
#define ROTA_LOWERING_GPU_EXPERTS_GPUGROUPEDCODE_H

#include "lowering/gpu/experts/GpuTileProduct.h"
#include "lowering/kernels/experts/Groups.h"

#include <array>

namespace rota::lowering {

/// For each sequence the first row and the end of each expert's rows, and
/// the rows that each block needs where it has fewer, otherwise 0, all i32.
class GroupTable {
public:
  GroupTable(const GroupShape &shape, mlir::Value base)
      : shape(shape), base(base) {}

  static int64_t stride(const GroupShape &shape) {
    return 2 * shape.experts + shape.blocks;
  }
  template <typename Builder>
  Memory firsts(Builder &k, mlir::Value sequence) const {
    return part(k, sequence, 0);
  }
  template <typename Builder>
  Memory ends(Builder &k, mlir::Value sequence) const {
    return part(k, sequence, shape.experts);
  }
  template <typename Builder>
  Memory overfull(Builder &k, mlir::Value sequence) const {
    return part(k, sequence, 2 * shape.experts);
  }

private:
  template <typename Builder>
  Memory part(Builder &k, mlir::Value sequence, int64_t first) const {
    return k.offset({base, k.ops().getI32Type()},
                    k.add(k.mul(sequence, stride(shape)), first));
  }

  const GroupShape &shape;
  mlir::Value base;
};

/// The rows of each expert in all sequences, one after the other, and their
/// tiles, all i32.
class ExpertTiles {
public:
  ExpertTiles(const GroupShape &shape, mlir::Value base)
      : shape(shape), base(base) {}

  static int64_t count(const GroupShape &shape) {
    return shape.experts * (stride(shape) + 1) + 1;
  }
  /// Rows of an expert in the sequences before each one, then in all.
  Memory befores(GpuBuilder &k, mlir::Value expert) const {
    return part(k, k.mul(expert, stride(shape)));
  }
  /// Not 0 where an expert is in a block with too few rows in any sequence.
  Memory overfull(GpuBuilder &k, mlir::Value expert) const {
    return k.offset(befores(k, expert), k.i64(shape.batch + 1));
  }
  /// Tiles of the experts before each one, then of all.
  Memory starts(GpuBuilder &k) const {
    return part(k, k.i64(shape.experts * stride(shape)));
  }

private:
  static int64_t stride(const GroupShape &shape) { return shape.batch + 2; }
  Memory part(GpuBuilder &k, mlir::Value first) const {
    return k.offset({base, k.ops().getI32Type()}, first);
  }

  const GroupShape &shape;
  mlir::Value base;
};

/// `rota.grouped_product` or its derivative, whose right matrix has rows as the
/// left one.
struct GroupedProduct {
  GroupShape shape; // of the left matrix
  int64_t out;
  bool transposed;
  mlir::Type stored; // of the result, or of what it is added to
  bool accumulate;

  std::string key() const;
  /// Elements of the rows of both matrices.
  std::array<int64_t, 2> widths() const { return {shape.width, out}; }
  int64_t tile() const {
    return GpuTileProduct::tileOf(shape.element, widths());
  }
  int64_t rowTilesOfBlock() const {
    return llvm::divideCeil(shape.rowsOfBlock(), tile());
  }
  int64_t rowTiles() const {
    return shape.batch * shape.blocks * rowTilesOfBlock();
  }
  /// The most tiles of rows that experts have.
  int64_t expertTiles() const { return rowTiles() + shape.experts; }
  int64_t matrixTiles() const { return llvm::divideCeil(shape.width, tile()); }
  int64_t columnTiles() const { return llvm::divideCeil(out, tile()); }
};

/// The place of RotaGpuLaunch::noteAt in the next kernel.
inline constexpr unsigned kNoteAt = 2, kNoteArguments = 2;

/// Adds up the tiles of experts, and notes the first block of experts with too
/// few rows where it is given memory for that. Arguments: groups, tiles of
/// experts, that memory, the call's name, and the number in the model of the
/// first expert with `hasOffset`. It has one block of GpuTileProduct::kThreads.
void emitTilesOfExperts(GpuBuilder &k, const GroupedProduct &product,
                        bool hasOffset);

class GroupedCode {
public:
  static constexpr int64_t kThreads = GpuTileProduct::kThreads;

  GroupedCode(GpuBuilder &k, const GroupedProduct &product);

  /// Arguments: groups, tiles of experts, rows, matrices, result. A block has a
  /// tile of the rows of one expert in all sequences, and columns; and zeros
  /// for rows without an expert.
  void emitProduct();
  /// Arguments: groups, left rows, right rows, result. A block has a part of
  /// the matrix of one expert.
  void emitGradient();

private:
  using Values = GpuTileProduct::Values;

  /// The expert that has a tile of that number; beyond all where none has.
  mlir::Value expertOf(const ExpertTiles &experts, mlir::Value tile);
  /// The numbers of `tileRows` rows of an expert, from its row `from` on.
  TileRows findRows(Memory befores, mlir::Value expert, mlir::Value from);
  void emitTile(const ExpertTiles &experts, mlir::Value tile,
                mlir::Value expert, mlir::Value column);
  void clearUnfilled(mlir::Value tile, mlir::Value column);

  GpuBuilder &k;
  const GroupedProduct &product;
  const GroupShape &shape;
  GroupTable groups;
  int64_t tileRows;
  std::unique_ptr<GpuTileProduct> tiles;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_EXPERTS_GPUGROUPEDCODE_H
