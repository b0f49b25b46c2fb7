// SPDX-License-Identifier: Apache-2.0
//
// A fixpoint over the factor rules of a function's ops.
#include "passes/shard/propagation/LengthDimensions.h"
#include "passes/shard/propagation/FactorAxes.h"

#include "ir/rota/model/Roles.h"
#include "llvm/ADT/SmallBitVector.h"

#include <map>

using namespace mlir;
using namespace mlir::rota;

/// The values of an op, each with the factors of its dimensions.
static std::vector<std::pair<Value, FactorRule::Dimensions>>
valuesOf(Operation *op, const FactorRule &rule) {
  std::vector<std::pair<Value, FactorRule::Dimensions>> values;
  for (auto [operand, dimensions] : llvm::zip(op->getOperands(), rule.operands))
    values.push_back({operand, dimensions});
  for (auto [result, dimensions] : llvm::zip(op->getResults(), rule.results))
    values.push_back({result, dimensions});
  return values;
}

void LengthDimensions::startAtResiduals(func::FuncOp function) {
  std::map<Operation *, LengthDimensions> sources;
  for (const RoleEdge &edge : residualEdgesIn(function->getParentOp())) {
    if (edge.user.function != function || !edge.source.isResult)
      continue;
    func::FuncOp source = edge.source.function;
    const LengthDimensions &known =
        sources.try_emplace(source, source).first->second;
    Value saved = edge.source.value();
    auto tensor = dyn_cast<RankedTensorType>(saved.getType());
    for (int64_t dim = 0, rank = tensor ? tensor.getRank() : 0; dim < rank;
         ++dim)
      if (known.contains(saved, dim))
        dimensions.insert(
            {function.getArgument(edge.user.index), unsigned(dim)});
  }
}

LengthDimensions::LengthDimensions(func::FuncOp function) {
  Block &body = function.getBody().front();
  FunctionRoles roles(function);
  auto start = [&](Value value, Role role) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    bool isKnown =
        isActivation(role) || isData(role) || role == Role::NamedValue;
    if (isKnown && tensor && tensor.getRank() > 1)
      dimensions.insert({value, 1});
  };
  for (auto [argument, role] :
       llvm::zip_equal(body.getArguments(), roles.arguments()))
    start(argument, role);
  for (auto [result, role] :
       llvm::zip_equal(body.getTerminator()->getOperands(), roles.results()))
    start(result, role);

  startAtResiduals(function);

  std::vector<std::pair<Operation *, FactorRule>> rules;
  for (Operation &op : body)
    if (isa<FactorRuleOpInterface>(op))
      rules.push_back({&op, divisionRule(&op)});
  size_t known = 0;
  while (known != dimensions.size()) {
    known = dimensions.size();
    for (auto &[op, rule] : rules) {
      llvm::SmallBitVector isLength(rule.sizes.size());
      auto values = valuesOf(op, rule);
      // Any factor of a dimension with several may be the length; all of them
      // together are.
      SmallVector<ArrayRef<int64_t>> together;
      for (auto &[value, factors] : values)
        for (auto [dim, list] : llvm::enumerate(factors)) {
          if (!contains(value, dim))
            continue;
          if (list.size() == 1)
            isLength.set(list.front());
          else
            together.push_back(list);
        }
      for (auto &[value, factors] : values)
        for (auto [dim, list] : llvm::enumerate(factors))
          if (llvm::is_contained(together, ArrayRef<int64_t>(list)) ||
              llvm::any_of(list, [&](int64_t f) { return isLength.test(f); }))
            dimensions.insert({value, unsigned(dim)});
    }
  }
}
