// SPDX-License-Identifier: Apache-2.0
//
// Limits of division, along uses.
#include "passes/shard/propagation/PartLimit.h"
#include "passes/shard/propagation/FactorAxes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numeric>

using namespace mlir;
using namespace mlir::rota;

int64_t PartLimit::parts(Value value, unsigned dim) {
  auto [place, isNew] = known.try_emplace({value, dim}, 1);
  if (!isNew)
    return place->second;
  int64_t limit = cast<RankedTensorType>(value.getType()).getDimSize(dim);
  for (OpOperand &use : value.getUses())
    limit = std::gcd(limit, partsOfUse(use, dim));
  return known[{value, dim}] = limit;
}

int64_t PartLimit::partsOfUse(OpOperand &use, unsigned dim) {
  Operation *op = use.getOwner();
  if (!isa<FactorRuleOpInterface>(op))
    return cast<RankedTensorType>(use.get().getType()).getDimSize(dim);
  FactorRule rule = rowDivisionRule(op);
  int64_t parts = 1;
  for (int64_t factor : rule.operands[use.getOperandNumber()][dim]) {
    int64_t own = rule.sizes[factor];
    if (llvm::is_contained(rule.indivisible, factor))
      own = 1;
    for (auto [result, dimensions] : llvm::zip(op->getResults(), rule.results))
      for (auto [resultDim, factors] : llvm::enumerate(dimensions))
        // Only the parts of the major factor are parts of the result's
        // dimension.
        if (own > 1 && !factors.empty() && factors.front() == factor)
          own = std::gcd(own, this->parts(result, resultDim));
    parts *= own;
    if (own != rule.sizes[factor])
      break;
  }
  return parts;
}

bool PartLimit::mayPad(Value value, unsigned dim) {
  return llvm::all_of(value.getUses(),
                      [&](OpOperand &use) { return mayPadUse(use, dim); });
}

bool PartLimit::mayPadUse(OpOperand &use, unsigned dim) {
  Operation *op = use.getOwner();
  // Uses in another function limit the value there.
  if (isa<func::ReturnOp>(op))
    return true;
  if (!isa<FactorRuleOpInterface>(op))
    return false;
  FactorRule rule = divisionRule(op);
  ArrayRef<int64_t> factors = rule.operands[use.getOperandNumber()][dim];
  if (factors.size() != 1 || !llvm::is_contained(rule.padded, factors[0]))
    return false;
  for (auto [result, dimensions] : llvm::zip(op->getResults(), rule.results))
    for (auto [resultDim, ofResult] : llvm::enumerate(dimensions))
      if (llvm::is_contained(ofResult, factors[0]) &&
          !mayPad(result, resultDim))
        return false;
  return true;
}
