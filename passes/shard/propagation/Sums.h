// SPDX-License-Identifier: Apache-2.0
//
// The values that are sums over ranks, and the ops that take them as sums.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_SUMS_H
#define ROTA_PASSES_SHARD_PROPAGATION_SUMS_H

#include "passes/shard/propagation/FactorAxes.h"

namespace mlir::rota {

/// A reduced factor that is divided makes a result that is the sum of what the
/// ranks hold. It stays a sum through ops that are linear in it, as long as
/// that moves no more bytes, and is summed up once. A count that does not end
/// in a gradient is summed up where it is made.
class Sums {
public:
  /// Axes over which an operand of accumulate, auxiliary_loss or return may be
  /// a sum.
  using Leave = llvm::function_ref<AxisList(OpOperand &use)>;

  Sums(func::FuncOp function, Leave leave);

  /// Whether `use` takes a value that is no sum beside one that is: each rank
  /// gives an equal share of it. So are biases of experts' rows, which are few
  /// beside the rows: rows are summed up after they are combined, when they are
  /// as many as the tokens.
  static bool takesShare(OpOperand &use);

  /// The axes over which `value` is a sum where it is made.
  AxisList madeAs(Value value) const { return made.lookup(value); }
  /// The axes over which `use`'s op takes its operand as a sum.
  AxisList takenAs(OpOperand &use) const;
  /// The axes over which all uses of `value` take it as a sum.
  AxisList takenByAll(Value value) const;
  /// The axes of the factors of `op`: those written on it without the axes over
  /// which all its operands are sums. Dividing it over those would sum up each
  /// operand instead of the result.
  FactorAxes factorsOf(Operation *op, const FactorRule &rule) const;

private:
  bool settle(func::FuncOp function, Leave leave);
  bool lowerCap(Value value);
  AxisList keptBy(OpOperand &use) const;
  bool handsOn(OpOperand &use) const;
  void visit(Operation *op);
  AxisList available(Value value) const;
  AxisList common(Operation *op, ArrayRef<int64_t> group) const;
  void keepTogether(Operation *op, const FactorRule &rule);
  bool pays(Operation *op, ArrayRef<int64_t> group, ArrayRef<AxisRefAttr> axes,
            ArrayRef<AxisRefAttr> own);

  MeshAttr mesh;
  llvm::DenseMap<Value, AxisList> made;
  /// Values that some use needs summed, and counts: the axes that all uses
  /// take.
  llvm::DenseMap<Value, AxisList> caps;
  llvm::DenseMap<OpOperand *, AxisList> taken;
  /// Factors of ops whose factors are not as written.
  llvm::DenseMap<Operation *, FactorAxes> together;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_SUMS_H
