// SPDX-License-Identifier: Apache-2.0
//
// Nodes of fusion: the ops of a block that work row by row, and how they read
// each other's values.
#ifndef ROTA_LOWERING_KERNELS_ROWS_FUSIONNODES_H
#define ROTA_LOWERING_KERNELS_ROWS_FUSIONNODES_H

#include "ir/rota/Rota.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace rota::lowering {

/// The rows of a kernel: it reads a tensor, in row-major order, as `rows` rows
/// of `columns` elements or as one value per row. `columns` is 0 while there
/// are only values per row.
struct RowSpace {
  int64_t rows = 0, columns = 0;
};

/// Row d0 of a kernel reads row `map(d0)` of the value, which is a row of
/// columns or one value.
struct Access {
  mlir::Value value;
  mlir::AffineMap map;
  bool isRow = true;
};

/// The relation of a reduction to rows.
enum class ReduceForm {
  Row,    // along the columns: one value per row
  Sum,    // over the rows: a row of columns
  Both,   // over columns and rows: one value
  Values, // over the rows, of one value per row: one value
};

/// The access to the operand of `broadcast`, where the result is read at
/// `access` in rows of `columns`. None when the broadcast mixes rows and
/// columns.
std::optional<Access> accessOfBroadcast(mlir::rota::BroadcastOp broadcast,
                                        const Access &access, int64_t columns);

/// The ops of a block that work row by row. Each is a node, computed in one
/// kernel, or is repeated in every kernel that uses it, because it is cheaper
/// to compute than to read: constants, broadcasts, widening to f32, conditions,
/// and what is computed from values that all rows share. (A constant that an op
/// outside kernels needs is both.)
class FusionNodes {
public:
  explicit FusionNodes(mlir::Block &block);

  struct Node {
    RowSpace space;
    bool isRow = true; // the result: a row of columns, or one value per row
    std::optional<ReduceForm> form; // nothing: no reduction

    /// Whether the result is complete only after all rows.
    bool isSum() const { return form && *form != ReduceForm::Row; }
  };

  /// Null when the op is not a node.
  const Node *lookup(mlir::Operation *op) const;

  /// Whether kernels repeat `op` rather than read its result.
  bool isRepeated(mlir::Operation *op) const;

  /// Makes a node one that kernels repeat, if they all can.
  bool tryRepeat(mlir::Operation *op);

  /// Whether an op that is not fused needs the value, as it is or reshaped.
  bool isNeededByStaying(mlir::Value value) const;

  /// The values that a node reads, through what is repeated.
  llvm::SmallVector<Access> accesses(mlir::Operation *node) const;

  /// The access of a node to its operand `index`.
  Access operandAccess(mlir::Operation *node, unsigned index) const;

private:
  bool isCheap(mlir::Operation *op) const;
  bool feedsSharedBroadcasts(mlir::Operation *op) const;
  bool touchesPerRow(mlir::Operation *op) const;
  bool isPerRow(mlir::Value value) const;
  void findPerRow(mlir::Block &block);
  std::optional<Node> classify(mlir::Operation *op) const;
  std::optional<Node> classifyReduce(mlir::rota::ReduceOp op) const;
  /// A broadcast that some node cannot repeat, or null.
  mlir::Operation *findUnrepeatable(mlir::Block &block) const;
  mlir::Operation *collect(const Access &access, int64_t columns,
                           llvm::SmallVectorImpl<Access> &accesses) const;

  llvm::DenseSet<mlir::Operation *> repeated;
  llvm::DenseSet<mlir::Operation *> perRow; // elementwise on values per row
  llvm::DenseMap<mlir::Operation *, Node> nodes;
};

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_ROWS_FUSIONNODES_H
