// SPDX-License-Identifier: Apache-2.0
//
// Helpers that the derivative, sharding and cost rules of the rota ops share
// with those of arith and math.
#ifndef ROTA_IR_ROTA_RULES_H
#define ROTA_IR_ROTA_RULES_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

/// `value` with elements of type `element`: extended, rounded, or as it is.
Value castElements(OpBuilder &builder, Location loc, Value value, Type element);

/// The element type in which the gradient of `operand` is made: f32 for a
/// parameter's bf16 copy, views of it and its rows at constant numbers, since
/// gradients accumulate in f32, otherwise the operand's own. The rows of
/// positions are shared by all sequences: their cotangent is a sum over the
/// batch, which only stays a partial sum of each rank if it is not rounded.
Type cotangentElement(Value operand);

/// A constant of `type` (a tensor or a scalar) with this value everywhere.
Value splatConstant(OpBuilder &builder, Location loc, Type type, double value);

/// The rule of an op whose results and operands of rank 1 or more have one
/// shape: dimensions correspond. `linear` as in FactorRule.
FactorRule elementwiseFactorRule(
    Operation *op,
    std::initializer_list<std::initializer_list<int64_t>> linear = {});

/// `rule` with padding allowed in all its factors, see FactorRule::padded.
FactorRule withPadding(FactorRule rule);

/// `flops` operations, `specialFunctions` of them exponentials, divisions and
/// the like, and the bytes of all operands and results once each. What is
/// computed is rounded where a result is bf16.
Cost streamingCost(Operation *op, double flops, double specialFunctions = 0);
/// The operations of `product`, and the same bytes.
Cost productCost(Operation *op, const ProductSize &product);

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_RULES_H
