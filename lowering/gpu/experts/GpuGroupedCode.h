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
/// whether a block has fewer rows than its experts were given, all i32.
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
  int64_t matrixTiles() const { return llvm::divideCeil(shape.width, tile()); }
  int64_t columnTiles() const { return llvm::divideCeil(out, tile()); }
};

class GroupedCode {
public:
  static constexpr int64_t kThreads = GpuTileProduct::kThreads;

  GroupedCode(GpuBuilder &k, const GroupedProduct &product);

  /// Arguments: groups, rows, matrices, result. A block has rows of one block
  /// of a sequence, and columns.
  void emitProduct();
  /// Arguments: groups, left rows, right rows, result. A block has a part of
  /// the matrix of one expert.
  void emitGradient();

private:
  using Values = GpuTileProduct::Values;

  /// The experts, of those that begin at `firsts` and `ends`, that have rows in
  /// [low, high): first, end.
  std::pair<mlir::Value, mlir::Value>
  expertsWith(Memory firsts, Memory ends, mlir::Value low, mlir::Value high);

  GpuBuilder &k;
  const GroupedProduct &product;
  const GroupShape &shape;
  GroupTable groups;
  int64_t tileRows;
  std::unique_ptr<GpuTileProduct> tiles;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_EXPERTS_GPUGROUPEDCODE_H
