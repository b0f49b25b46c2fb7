// SPDX-License-Identifier: Apache-2.0
//
// Over which axes values leave a module's functions as sums over ranks.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_UNREDUCEDRESULTS_H
#define ROTA_PASSES_SHARD_PROPAGATION_UNREDUCEDRESULTS_H

#include "ir/rota/model/Roles.h"
#include "passes/shard/propagation/Sums.h"

namespace mlir::rota {

/// All results that have one destination are sums over the same axes: the
/// gradients of a parameter, the module's loss, and a residual, which its users
/// must be able to take as a sum. Auxiliary losses are summed up with the main
/// one. The agreed axes are the largest set that all results and users support.
class UnreducedResults {
public:
  /// Computes the agreed axes. Writes those of residuals into the
  /// `rota.sharding` of results and arguments; needs `rota.factors` and
  /// shardings everywhere.
  explicit UnreducedResults(ModuleOp module);

  /// The sums in `function` under the agreed axes.
  Sums sumsOf(func::FuncOp function) const;

  /// Axes over which all gradients of a parameter are returned as sums.
  AxisList gradient(ParamOp param) const { return agreed.lookup(param); }
  /// Axes over which sum, weight and terms of the loss are.
  AxisList loss() const { return agreed.lookup(nullptr); }

  /// True for sum, weight and terms of the model's loss.
  static bool isLoss(func::FuncOp function, unsigned result);
  /// True for a returned scalar without a sharding, which may be any sum.
  static bool isFreeScalar(OpOperand &use);
  /// True for a constant that is the same everywhere: the sum of equal parts
  /// over any ranks.
  static bool isSplat(Value value);

private:
  AxisList allowed(OpOperand &use) const;
  bool isResidual(func::FuncOp function, unsigned result) const;
  bool agree(func::FuncOp function);
  bool agreeOnResiduals(func::FuncOp function, const Sums &sums);
  void tellResiduals();

  MeshAttr mesh;
  SmallVector<RoleEdge> edges; // edges of residuals
  /// By parameter, and for the loss by null. A destination without an entry
  /// supports all axes that do not divide it.
  llvm::DenseMap<Operation *, AxisList> agreed;
  /// Agreed axes of residuals, by the function that makes them and the result.
  llvm::DenseMap<std::pair<Operation *, unsigned>, AxisList> residuals;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_UNREDUCEDRESULTS_H
