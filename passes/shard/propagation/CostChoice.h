// SPDX-License-Identifier: Apache-2.0
//
// The division of the ops that costs divide (ir/rota/sharding/DividedByCost.h).
#ifndef ROTA_PASSES_SHARD_PROPAGATION_COSTCHOICE_H
#define ROTA_PASSES_SHARD_PROPAGATION_COSTCHOICE_H

#include "passes/shard/propagation/DivisionCosts.h"

#include "llvm/ADT/MapVector.h"

#include <map>

namespace mlir::rota {

/// Chooses among the divisions of the function's ops with the trait
/// DividedByCost those that cost least (DivisionCosts.h); all other ops keep
/// their division. The search changes one op, or two that share a value, as
/// long as that costs less: it ends at a choice that no such change makes
/// cheaper. It starts at what propagation says, and again where all ops take
/// another option. Functions of a layer choose together (LayerChoice.h).
class CostChoice {
public:
  /// Divides the ops in `costs`.
  CostChoice(func::FuncOp function, Propagation &propagation,
             DivisionCosts &costs);

private:
  struct Choice {
    SmallVector<FactorAxes> options;
    size_t taken = 0;
  };
  /// An op and the number of the option that it would take.
  using Change = std::pair<Operation *, size_t>;

  void findContests(func::FuncOp function, Propagation &propagation);
  void addWholeOptions(Operation *op, SmallVectorImpl<FactorAxes> &options);
  void take(Operation *op, size_t option);
  SmallVector<SmallVector<Change, 2>> changes();
  void search();
  bool improve();
  /// The numbers of the options that the ops have.
  SmallVector<size_t> taken() const;
  double cost() { return costWith({}); }
  double costWith(ArrayRef<Change> changes);
  void explain();

  DivisionCosts &costs;
  MeshAttr mesh;
  llvm::MapVector<Operation *, Choice> choices;
  SmallVector<Operation *> ops;                // with a choice
  llvm::SetVector<Value> values;               // around them
  std::map<SmallVector<size_t>, double> known; // costs by options
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_COSTCHOICE_H
