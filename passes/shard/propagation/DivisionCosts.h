// SPDX-License-Identifier: Apache-2.0
//
// The cost of the division of a function's ops.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_DIVISIONCOSTS_H
#define ROTA_PASSES_SHARD_PROPAGATION_DIVISIONCOSTS_H

#include "ir/rota/cost/Machine.h"
#include "ir/rota/model/Roles.h"
#include "passes/shard/propagation/Propagation.h"

#include "llvm/ADT/SetVector.h"

#include <unordered_map>

namespace mlir::rota {

struct CountedRows; // ir/rota/experts/CountedRows.h

/// Costs in bytes that a rank sends to its nearest neighbours: through slower
/// levels of the machine's network, as many as take the same time. A value
/// costs the plans of ReshardPlanner.h from the sharding in which it is made to
/// each different one that some use needs, rows of experts by the part of them
/// that is expected to be filled. Work costs what a rank could send in its time
/// (Machine.h).
class DivisionCosts {
public:
  /// All ops are divided as `propagation`, which has run, says.
  DivisionCosts(func::FuncOp function, Propagation &propagation);

  MeshAttr getMesh() const { return mesh; }
  /// The rule of `op`, which may be any op, and the axes of its factors.
  const FactorRule &ruleOf(Operation *op) { return divisionOf(op).rule; }
  const FactorAxes &factorsOf(Operation *op) { return divisionOf(op).factors; }
  void divide(Operation *op, FactorAxes factors);

  /// Counts sums over these axes, too. Others are left out: no division that is
  /// compared changes them.
  void countSums(ArrayRef<AxisRefAttr> axes);
  const AxisList &countedSums() const { return counted; }
  /// The counted axes over which `value` is a sum where it is made.
  AxisList sumsOf(Value value);

  /// The sharding in which a residual leaves: a sum over axes that do not
  /// divide it may stay one. `insert-reshards` decides.
  ShardingAttr savedAs(Value value);

  /// The operands and results of `ops`, each once.
  static llvm::SetVector<Value> valuesAround(ArrayRef<Operation *> ops);
  /// The cost of moving `values`, and of the work of `ops`.
  double costOf(ArrayRef<Operation *> ops, ArrayRef<Value> values);
  /// That cost if the changed ops were divided so; their divisions stay.
  double costIf(ArrayRef<std::pair<Operation *, const FactorAxes *>> changes,
                ArrayRef<Operation *> ops, ArrayRef<Value> values);
  double costAround(ArrayRef<Operation *> ops) {
    return costOf(ops, valuesAround(ops).getArrayRef());
  }
  double workOf(Operation *op, const FactorAxes &factors) const;
  /// The cost of so many operations of `op`.
  double bytesOfWork(Operation *op, double flops) const {
    return machine.bytesOfWork(flops,
                               getElementTypeOrSelf(*op->result_type_begin()));
  }
  double costOf(Type type, ShardingAttr from, ShardingAttr to,
                std::optional<double> fill = std::nullopt);
  /// A tensor of an op with a rule under the axes of its factors.
  ShardingAttr compose(const FactorRule::Dimensions &dimensions,
                       const FactorAxes &factors,
                       ArrayRef<AxisRefAttr> unreduced);

private:
  struct OpDivision {
    FactorRule rule;
    FactorAxes factors;
    std::optional<double> work; // cost of it; none: not known yet
  };
  /// The operands that an op takes as sums, and the axes of these sums.
  struct Passed {
    ArrayRef<int64_t> operands;
    AxisList axes;
  };

  OpDivision &divisionOf(Operation *op);
  Passed passedBy(Operation *op);
  bool makesLess(Operation *op, ArrayRef<int64_t> operands);
  const llvm::SetVector<Value> &changedBy(Operation *op);
  double costOf(Value value);
  double movedFrom(Value value);
  ShardingAttr madeAs(Value value);
  ShardingAttr neededBy(OpOperand &use);
  ShardingAttr closed(ShardingAttr sharding, ArrayRef<AxisRefAttr> unreduced);

  func::FuncOp function;
  Propagation &propagation;
  MeshAttr mesh;
  Machine machine;
  SmallVector<Role> resultRoles;
  AxisList counted;
  std::unordered_map<Operation *, OpDivision> divisions;
  // Of the present divisions, as far as they were asked for.
  llvm::DenseMap<Value, AxisList> sums;
  llvm::DenseMap<Value, double> valueCosts;
  std::unordered_map<Operation *, llvm::SetVector<Value>> changed;
  /// By type, shardings and fill.
  llvm::DenseMap<std::tuple<Type, Attribute, Attribute, Attribute>, double>
      costs;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_DIVISIONCOSTS_H
