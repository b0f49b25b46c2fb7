// SPDX-License-Identifier: Apache-2.0
//
// The division of the ops that costs divide (ir/rota/sharding/DividedByCost.h).
#ifndef ROTA_PASSES_SHARD_PROPAGATION_COSTCHOICE_H
#define ROTA_PASSES_SHARD_PROPAGATION_COSTCHOICE_H

#include "passes/shard/propagation/Propagation.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::rota {

struct CountedRows; // ir/rota/experts/CountedRows.h

/// Chooses among the divisions of the function's ops with the trait
/// DividedByCost those for which the fewest bytes move. A value costs the plans
/// of ReshardPlanner.h from the sharding in which it is made to each different
/// one that some use needs, rows of experts by the part of them that is
/// expected to be filled; all other ops keep their division. The search changes
/// one op, or two that share a value, as long as that costs less: it ends at a
/// choice that no such change makes cheaper. It starts at what propagation
/// says, and again where all ops take another option.
class CostChoice {
public:
  /// `propagation` has run.
  CostChoice(func::FuncOp function, Propagation &propagation);

  /// The axes of the factors of `op`, which may be any op with a rule.
  FactorAxes factorsOf(Operation *op);

private:
  struct Choice {
    SmallVector<FactorAxes, 2> options;
    size_t taken = 0;
  };
  /// An op and the number of the option that it would take.
  using Change = std::pair<Operation *, size_t>;

  void findContests(func::FuncOp function);
  SmallVector<SmallVector<Change, 2>> changes();
  void search();
  bool improve();
  int64_t saved(ArrayRef<Change> changes);
  int64_t costOf(const llvm::SetVector<Value> &values);
  int64_t costOf(Value value);
  int64_t costOf(Value value, ShardingAttr from, ShardingAttr to,
                 const std::optional<CountedRows> &rows);
  ShardingAttr madeAs(Value value);
  ShardingAttr neededBy(OpOperand &use);
  ShardingAttr compose(Operation *op, const FactorRule::Dimensions &dimensions,
                       ArrayRef<AxisRefAttr> unreduced);
  void explain();

  Propagation &propagation;
  MeshAttr mesh;
  llvm::MapVector<Operation *, Choice> choices;
  /// Axes that some options give to different factors. Sums over others are
  /// summed up either way and left out.
  AxisList contested;
  /// By type, shardings and fill.
  llvm::DenseMap<std::tuple<Type, Attribute, Attribute, Attribute>, int64_t>
      costs;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_COSTCHOICE_H
