// SPDX-License-Identifier: Apache-2.0
//
// A short way to write the sharding rules of ops.
#ifndef ROTA_IR_ROTA_SHARDING_RULEBUILDER_H
#define ROTA_IR_ROTA_SHARDING_RULEBUILDER_H

#include "ir/rota/Interfaces.h"

namespace mlir::rota {

/// Builds a rule by naming factors; an operand or result is then a list of
/// dimensions.
class RuleBuilder {
public:
  using Dimensions = FactorRule::Dimensions;

  int64_t factor(int64_t size, bool divisible = true) {
    rule.sizes.push_back(size);
    int64_t index = rule.sizes.size() - 1;
    if (!divisible)
      rule.indivisible.push_back(index);
    return index;
  }

  /// An indivisible factor whose positions an operand numbers.
  int64_t numbered(int64_t size) {
    rule.numbered.push_back(factor(size, /*divisible=*/false));
    return rule.numbered.back();
  }

  /// One that tokens number. Its last parts may end in padding.
  int64_t vocabulary(int64_t size) {
    rule.padded.push_back(numbered(size));
    return rule.padded.back();
  }

  /// A factor per dimension of `shape`.
  Dimensions factors(llvm::ArrayRef<int64_t> shape) {
    Dimensions dimensions;
    for (int64_t size : shape)
      dimensions.push_back({factor(size)});
    return dimensions;
  }

  /// A factor per dimension of `shape`, the last one indivisible.
  Dimensions rowFactors(llvm::ArrayRef<int64_t> shape) {
    Dimensions dimensions = factors(shape.drop_back());
    dimensions.push_back({factor(shape.back(), /*divisible=*/false)});
    return dimensions;
  }

  /// Declares the op linear in these operands together.
  void linear(llvm::ArrayRef<int64_t> operands) {
    rule.linear.emplace_back(operands.begin(), operands.end());
  }

  /// Declares that the op's local form combines over the parts of the factor.
  void combine(int64_t factor) { rule.combined.push_back(factor); }

  FactorRule finish(llvm::ArrayRef<Dimensions> operands,
                    llvm::ArrayRef<Dimensions> results) {
    rule.operands.assign(operands.begin(), operands.end());
    rule.results.assign(results.begin(), results.end());
    return std::move(rule);
  }

private:
  FactorRule rule;
};

/// `operands` with those of an offset, which has no dimensions, where there is
/// one.
inline llvm::SmallVector<FactorRule::Dimensions>
withOffset(llvm::SmallVector<FactorRule::Dimensions> operands, Value offset) {
  if (offset)
    operands.push_back({});
  return operands;
}

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_SHARDING_RULEBUILDER_H
