// SPDX-License-Identifier: Apache-2.0
//
// One choice among divisions for all functions of a layer.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_LAYERCHOICE_H
#define ROTA_PASSES_SHARD_PROPAGATION_LAYERCHOICE_H

#include "passes/shard/propagation/DivisionCosts.h"

namespace mlir::rota {

/// Chooses the divisions of a layer's ops with the trait DividedByCost
/// (CostChoice.h) in one function in which forward and backward follow each
/// other. What backward computes again is there the forward's own value, and
/// each value of the forward that backward reads is saved, whether a
/// rematerialization policy saves it or not. So the choice, and with it the
/// order of sums, depends neither on the policy nor on a split backward, and an
/// op that is computed again is divided as it was before.
class LayerChoice {
public:
  explicit LayerChoice(LayerOp layer);

  /// Divides the ops of `function`, one of the layer's.
  void divide(func::FuncOp function, DivisionCosts &costs) const;

private:
  llvm::DenseMap<Operation *, FactorAxes> divisions; // by op of a function
  AxisList sums; // those that some division changes
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_LAYERCHOICE_H
