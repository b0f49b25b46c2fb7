// SPDX-License-Identifier: Apache-2.0
//
// The parts of composite ops. Everything is computed in f32 (f64 for f64
// operands) and rounded once at the end; divisions and square roots are exact,
// so that a value that is computed twice has the same bits both times.
#ifndef ROTA_IR_ROTA_COMPOSITE_ARITHMETIC_H
#define ROTA_IR_ROTA_COMPOSITE_ARITHMETIC_H

#include "ir/rota/Rota.h"

namespace mlir::rota {

/// Builds elementwise ops at one place, in the compute type of an op.
class Arithmetic {
public:
  Arithmetic(OpBuilder &builder, Location loc, RankedTensorType like)
      : builder(builder), loc(loc), shape(like.getShape()),
        element(like.getElementType().isF64() ? like.getElementType()
                                              : builder.getF32Type()) {}

  /// `value` in the compute type.
  Value widen(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getElementType() == element)
      return value;
    return arith::ExtFOp::create(builder, loc, type.clone(element), value);
  }

  /// `value` in the element type of `type`.
  Value convert(Value value, Type type) {
    if (value.getType() == type)
      return value;
    if (getElementTypeOrSelf(type).getIntOrFloatBitWidth() >
        element.getIntOrFloatBitWidth())
      return arith::ExtFOp::create(builder, loc, type, value);
    return arith::TruncFOp::create(builder, loc, type, value);
  }

  /// A tensor shaped as `like` with `number` everywhere.
  Value splat(double number, Value like) {
    auto type = cast<RankedTensorType>(like.getType());
    auto attr =
        DenseElementsAttr::get(type, builder.getFloatAttr(element, number));
    return arith::ConstantOp::create(builder, loc, attr);
  }

  Value add(Value a, Value b) {
    return arith::AddFOp::create(builder, loc, a, b);
  }
  Value sub(Value a, Value b) {
    return arith::SubFOp::create(builder, loc, a, b);
  }
  Value mul(Value a, Value b) {
    return arith::MulFOp::create(builder, loc, a, b);
  }
  Value div(Value a, Value b) {
    return arith::DivFOp::create(builder, loc, a, b);
  }
  Value sqrt(Value a) { return math::SqrtOp::create(builder, loc, a); }

  /// The sum over the last dimension.
  Value rowSum(Value value) {
    return reduce(value, {int64_t(shape.size()) - 1});
  }

  /// The sum over the last dimension, divided by its size.
  Value rowMean(Value value) {
    Value sum = rowSum(value);
    return div(sum, splat(shape.back(), sum));
  }

  /// The sum over all dimensions but the last.
  Value sumOfRows(Value value) {
    SmallVector<int64_t> leading =
        llvm::to_vector(llvm::seq<int64_t>(0, shape.size() - 1));
    return leading.empty() ? value : reduce(value, leading);
  }

  /// A value per row, repeated along the last dimension.
  Value alongRow(Value value) {
    return broadcast(value,
                     llvm::to_vector(llvm::seq<int64_t>(0, shape.size() - 1)));
  }

  /// A vector, repeated for every row.
  Value forEachRow(Value value) {
    return broadcast(value, {int64_t(shape.size()) - 1});
  }

  /// 1 / (1 + exp(-value)).
  Value sigmoid(Value value) {
    Value one = splat(1.0, value);
    return div(one, add(one, expOfMinus(value)));
  }

  Value expOfMinus(Value value) {
    return math::ExpOp::create(builder, loc,
                               arith::NegFOp::create(builder, loc, value));
  }

  Value erf(Value value) { return math::ErfOp::create(builder, loc, value); }

  /// `value` less the mean of its row.
  Value centered(Value value) { return sub(value, alongRow(rowMean(value))); }

  /// 1 / sqrt(mean(value^2) + epsilon), a value per row.
  Value inverseRootMeanSquare(Value value, double epsilon) {
    Value mean = rowMean(mul(value, value));
    Value root = sqrt(add(mean, splat(epsilon, mean)));
    return div(splat(1.0, root), root);
  }

private:
  Value reduce(Value value, ArrayRef<int64_t> dims) {
    SmallVector<int64_t> kept;
    for (auto [index, size] : llvm::enumerate(shape))
      if (!llvm::is_contained(dims, int64_t(index)))
        kept.push_back(size);
    return ReduceOp::create(builder, loc, RankedTensorType::get(kept, element),
                            ReduceKind::Sum, value, dims);
  }

  Value broadcast(Value value, ArrayRef<int64_t> dims) {
    if (cast<RankedTensorType>(value.getType()).getShape() == shape)
      return value;
    return BroadcastOp::create(
        builder, loc, RankedTensorType::get(shape, element), value, dims);
  }

  OpBuilder &builder;
  Location loc;
  ArrayRef<int64_t> shape;
  Type element;
};

} // namespace mlir::rota

#endif // ROTA_IR_ROTA_COMPOSITE_ARITHMETIC_H
