// SPDX-License-Identifier: Apache-2.0
//
// Values and rules that the answers of several ops share.
#include "ir/rota/OpFamily.h"

#include <numeric>

using namespace mlir;
using namespace mlir::rota;

Value mlir::rota::castElements(OpBuilder &builder, Location loc, Value value,
                               Type element) {
  Type from = getElementTypeOrSelf(value);
  if (from == element)
    return value;
  Type type = element;
  if (auto tensor = dyn_cast<RankedTensorType>(value.getType()))
    type = tensor.clone(element);
  if (from.getIntOrFloatBitWidth() < element.getIntOrFloatBitWidth())
    return arith::ExtFOp::create(builder, loc, type, value);
  return arith::TruncFOp::create(builder, loc, type, value);
}

/// The tensor whose rows at constant numbers `value` has, or `value` itself.
static Value rowsOf(Value value) {
  auto rows = value.getDefiningOp<IndexOpInterface>();
  if (!rows || !matchPattern(rows.getIndices(), m_Constant()))
    return value;
  auto rule = dyn_cast<FactorRuleOpInterface>(rows.getOperation());
  if (!rule)
    return value;
  FactorRule factors = rule.getFactorRule();
  if (factors.linear.size() != 1 || factors.linear.front().size() != 1)
    return value;
  return rows->getOperand(factors.linear.front().front());
}

Type mlir::rota::cotangentElement(Value operand) {
  Type element = getElementTypeOrSelf(operand);
  Value source = viewedValue(rowsOf(viewedValue(operand)));
  if (source.getDefiningOp<ReadOp>() && element.getIntOrFloatBitWidth() < 32)
    return Float32Type::get(operand.getContext());
  return element;
}

Value mlir::rota::splatConstant(OpBuilder &builder, Location loc, Type type,
                                double value) {
  TypedAttr attribute;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    attribute = DenseElementsAttr::get(
        tensor, builder.getFloatAttr(tensor.getElementType(), value));
  else
    attribute = builder.getFloatAttr(type, value);
  return arith::ConstantOp::create(builder, loc, attribute);
}

FactorRule mlir::rota::elementwiseFactorRule(
    Operation *op,
    std::initializer_list<std::initializer_list<int64_t>> linear) {
  RuleBuilder builder;
  for (auto operands : linear)
    builder.linear(operands);
  auto rankOf = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? tensor.getRank() : 0;
  };
  Dimensions dimensions;
  if (op->getNumResults() != 0 && rankOf(op->getResult(0).getType()) != 0)
    dimensions = builder.factors(shapeOf(op->getResult(0)));
  auto of = [&](Value value) {
    return rankOf(value.getType()) == 0 ? Dimensions() : dimensions;
  };
  return builder.finish(llvm::map_to_vector(op->getOperands(), of),
                        llvm::map_to_vector(op->getResults(), of));
}

FactorRule mlir::rota::withPadding(FactorRule rule) {
  rule.padded.resize(rule.sizes.size());
  std::iota(rule.padded.begin(), rule.padded.end(), 0);
  return rule;
}

Cost mlir::rota::streamingCost(Operation *op, double flops,
                               double specialFunctions) {
  Cost cost;
  cost.flops = flops;
  cost.specialFunctions = specialFunctions;
  for (Value operand : op->getOperands())
    cost.bytesRead += bytesOf(operand);
  for (Value result : op->getResults()) {
    cost.bytesWritten += bytesOf(result);
    if (flops > 0 && getElementTypeOrSelf(result).isBF16())
      cost.roundings += elementsOf(result);
  }
  return cost;
}

Cost mlir::rota::productCost(Operation *op, const ProductSize &product) {
  Cost cost = streamingCost(op, product.flops());
  cost.form = WorkForm::Product;
  cost.product = product;
  return cost;
}
