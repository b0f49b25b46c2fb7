// SPDX-License-Identifier: Apache-2.0
//
// Tokens divided over an axis whose ranks would repeat the work.
#ifndef ROTA_PASSES_SHARD_PROPAGATION_TOKENDIVISION_H
#define ROTA_PASSES_SHARD_PROPAGATION_TOKENDIVISION_H

#include "passes/shard/propagation/DivisionCosts.h"
#include "passes/shard/propagation/LengthDimensions.h"

namespace mlir::rota {

/// Divides ops that an axis of the mesh does not divide along the length of
/// activations, where that costs less. The first ones are those whose repeated
/// work costs more than gathering their results, or summing them up, of which
/// nothing else of the function decides. Then those follow that make or use a
/// value of a divided op, work on tokens one by one, and cost less so: the
/// gather moves to after them. A remark (category `shard`, name
/// `divided-by-tokens`) names each.
class TokenDivision {
public:
  /// Divides the ops in `costs`.
  TokenDivision(func::FuncOp function, DivisionCosts &costs);

  int64_t dividedOps() const { return total; }

private:
  void divideOver(AxisRefAttr axis);
  std::optional<FactorAxes> tokensDivided(Operation *op, AxisRefAttr axis);
  bool paysAlone(Operation *op, const FactorAxes &divided, AxisRefAttr axis);
  bool follows(Operation *op, const FactorAxes &divided, AxisRefAttr axis);
  void take(Operation *op, const FactorAxes &divided);

  func::FuncOp function;
  DivisionCosts &costs;
  MeshAttr mesh;
  LengthDimensions lengths;
  llvm::DenseSet<Operation *> taken; // over the axis at hand
  int64_t total = 0;
};

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PROPAGATION_TOKENDIVISION_H
