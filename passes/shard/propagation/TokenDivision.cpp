// SPDX-License-Identifier: Apache-2.0
//
// From ops whose repeated work is dearest to their neighbours.
#include "passes/shard/propagation/TokenDivision.h"

#include "ir/rota/sharding/DividedByCost.h"
#include "mlir/IR/Remarks.h"
#include "passes/shard/reshard/ReshardPlanner.h"

using namespace mlir;
using namespace mlir::rota;

/// True for a function of the model itself: updates have no tokens.
static bool hasTokens(func::FuncOp function) {
  FunctionRoles roles(function);
  auto mayHave = [](Role role) {
    return isActivation(role) || isResidual(role);
  };
  return llvm::any_of(roles.arguments(), mayHave) ||
         llvm::any_of(roles.results(), mayHave);
}

TokenDivision::TokenDivision(func::FuncOp function, DivisionCosts &costs)
    : function(function), costs(costs), mesh(costs.getMesh()),
      lengths(function) {
  if (!hasTokens(function))
    return;
  for (uint32_t number = 0; number <= getMaxEnumValForMeshAxis(); ++number) {
    auto axis =
        AxisRefAttr::get(function.getContext(), static_cast<MeshAxis>(number));
    if (axis.getAxis() != MeshAxis::Stage && mesh.getSize(axis) > 1)
      divideOver(axis);
  }
}

/// The factors of `op` with the axis, of which no part divides the op, dividing
/// its tokens. None where the op has no tokens or the ranks do not divide them
/// evenly.
std::optional<FactorAxes> TokenDivision::tokensDivided(Operation *op,
                                                       AxisRefAttr axis) {
  // Costs have divided ops with the trait already.
  if (!isa<FactorRuleOpInterface>(op) || op->hasTrait<DividedByCost>() ||
      isa<ReadOp, AccumulateOp, ConstrainOp>(op))
    return std::nullopt;
  const FactorRule &rule = costs.ruleOf(op);
  FactorAxes factors = costs.factorsOf(op);
  bool isDivided = llvm::any_of(factors, [&](const AxisList &axes) {
    return overlapsAny(axis, axes, mesh);
  });
  std::optional<int64_t> tokens;
  auto find = [&](ValueRange values, ArrayRef<FactorRule::Dimensions> tensors) {
    for (auto [value, tensor] : llvm::zip(values, tensors))
      for (auto [dim, list] : llvm::enumerate(tensor))
        if (list.size() == 1 && lengths.contains(value, dim))
          tokens = list.front();
  };
  find(op->getOperands(), rule.operands);
  find(op->getResults(), rule.results);
  if (isDivided || !tokens || llvm::is_contained(rule.indivisible, *tokens))
    return std::nullopt;
  AxisList &axes = factors[*tokens];
  axes.push_back(axis);
  if (rule.sizes[*tokens] % mesh.getSize(axes) != 0)
    return std::nullopt;
  FactorAxes contiguous = factors;
  dropStrided(rule, contiguous, mesh);
  if (contiguous != factors)
    return std::nullopt;
  return factors;
}

/// True when the work that ranks repeat costs more than gathering the results
/// or summing them up. The answer is the same wherever the op is computed
/// again, so that its result has the same bits there.
bool TokenDivision::paysAlone(Operation *op, const FactorAxes &divided,
                              AxisRefAttr axis) {
  const FactorRule &rule = costs.ruleOf(op);
  const FactorAxes &factors = costs.factorsOf(op);
  double repeated = costs.workOf(op, factors) - costs.workOf(op, divided);
  if (repeated <= double(ReshardCost::messageBytes))
    return false;
  double moved = 0;
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    AxisList sums = intersection(summedAxes(rule, number, divided, mesh),
                                 AxisList{axis}, mesh);
    moved += costs.costOf(result.getType(),
                          costs.compose(rule.results[number], divided, sums),
                          costs.compose(rule.results[number], factors, {}));
  }
  return moved < repeated;
}

/// True for an op that makes each token of its results out of that token of its
/// operands and is next to a divided op. A sum over tokens, such as that of a
/// gain's gradient, would have other bits.
bool TokenDivision::follows(Operation *op, const FactorAxes &divided,
                            AxisRefAttr axis) {
  const FactorRule &rule = costs.ruleOf(op);
  bool reduces = !rule.reducedFactors().empty();
  for (unsigned number = 0; number < op->getNumResults(); ++number)
    reduces |= overlapsAny(axis, summedAxes(rule, number, divided, mesh), mesh);
  if (reduces)
    return false;
  auto isTaken = [&](Operation *other) { return taken.contains(other); };
  return llvm::any_of(op->getUsers(), isTaken) ||
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return isTaken(operand.getDefiningOp());
         });
}

void TokenDivision::take(Operation *op, const FactorAxes &divided) {
  double before = costs.costAround(op);
  costs.divide(op, divided);
  taken.insert(op);
  ++total;
  remark::passed(
      op->getLoc(),
      remark::RemarkOpts::name("divided-by-tokens").category("shard"))
      << remark::reason("'{0}' is divided along its tokens, since its ranks "
                        "would repeat its work",
                        op->getName().getStringRef())
      << remark::metric("Saved", int64_t(before - costs.costAround(op)));
}

void TokenDivision::divideOver(AxisRefAttr axis) {
  costs.countSums(axis);
  taken.clear();
  llvm::MapVector<Operation *, FactorAxes> candidates;
  for (Operation &op : function.getBody().front())
    if (auto divided = tokensDivided(&op, axis))
      candidates[&op] = std::move(*divided);
  for (auto &[op, divided] : candidates)
    if (paysAlone(op, divided, axis))
      take(op, divided);
  bool changed = !taken.empty();
  while (changed) {
    changed = false;
    for (auto &[op, divided] : candidates) {
      if (taken.contains(op) || !follows(op, divided, axis))
        continue;
      double after = costs.costIf({{op, &divided}}, op,
                                  costs.valuesAround(op).getArrayRef());
      if (after >= costs.costAround(op))
        continue;
      take(op, divided);
      changed = true;
    }
  }
}
