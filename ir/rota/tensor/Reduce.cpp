// SPDX-License-Identifier: Apache-2.0
//
// Reductions and broadcasts.
#include "ir/rota/OpFamily.h"

using namespace mlir;
using namespace mlir::rota;

static SmallVector<int64_t> without(ArrayRef<int64_t> shape,
                                    ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, int64_t(dim)))
      kept.push_back(size);
  return kept;
}

/// Checks that `dims` ascend within `rank`.
static LogicalResult checkDims(Operation *op, ArrayRef<int64_t> dims,
                               int64_t rank) {
  int64_t last = -1;
  for (int64_t dim : dims) {
    if (dim <= last || dim >= rank)
      return op->emitOpError("expected ascending dims below ")
             << rank << ", got [" << dims << "]";
    last = dim;
  }
  return success();
}

LogicalResult ReduceOp::verify() {
  // C1: ascending dimensions of the operand.
  if (failed(checkDims(*this, getDims(), tensorOf(getInput()).getRank())))
    return failure();
  // C2: the operand's shape without them.
  if (failed(checkShape(*this, "a result", getResult(),
                        without(shapeOf(getInput()), getDims()))))
    return failure();
  return checkElement(*this, "a result", getResult(), elementOf(getInput()));
}

LogicalResult BroadcastOp::verify() {
  // C1: ascending dimensions of the result, one per operand dimension.
  if (failed(checkDims(*this, getDims(), tensorOf(getResult()).getRank())))
    return failure();
  if (int64_t(getDims().size()) != tensorOf(getInput()).getRank())
    return emitOpError("expected a dim per operand dimension, got ")
           << getDims().size() << " for " << getInput().getType();
  // C2: sizes agree along them.
  for (auto [dim, size] : llvm::zip(getDims(), shapeOf(getInput())))
    if (shapeOf(getResult())[dim] != size)
      return emitOpError("expected size ")
             << size << " in dimension " << dim << ", got " << getType();
  return checkElement(*this, "a result", getResult(), elementOf(getInput()));
}

/// The dimensions of a tensor of this rank that `dims` does not name.
static SmallVector<int64_t> otherDims(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim))
      others.push_back(dim);
  return others;
}

/// sum: dx = broadcast dy. max: dx = broadcast (dy / n) at the n elements of x
/// that equal the maximum, counted in f32 at least.
FailureOr<Cotangents> ReduceOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                    ArrayRef<bool>) {
  RankedTensorType type = tensorOf(getInput());
  SmallVector<int64_t> kept = otherDims(type.getRank(), getDims());
  auto spread = [&](Value value) -> Value {
    return BroadcastOp::create(builder, getLoc(), type, value, kept);
  };
  Value dy = cotangents[0];
  if (getKind() == ReduceKind::Sum)
    return Cotangents{spread(dy)};
  Value isMaximum =
      arith::CmpFOp::create(builder, getLoc(), arith::CmpFPredicate::OEQ,
                            getInput(), spread(getResult()));
  Type element = elementOf(dy), wide = element;
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  auto constant = [&](Type element, double value) {
    return splatConstant(builder, getLoc(), type.clone(element), value);
  };
  Value ones = arith::SelectOp::create(
      builder, getLoc(), isMaximum, constant(wide, 1.0), constant(wide, 0.0));
  Value count =
      ReduceOp::create(builder, getLoc(), tensorOf(getResult()).clone(wide),
                       ReduceKind::Sum, ones, getDims());
  Value share = arith::DivFOp::create(
      builder, getLoc(), castElements(builder, getLoc(), dy, wide), count);
  Value dx = spread(castElements(builder, getLoc(), share, element));
  return Cotangents{arith::SelectOp::create(builder, getLoc(), isMaximum, dx,
                                            constant(element, 0.0))};
}

/// dx = sum of dy over the repeated dimensions, added in f32 at least.
FailureOr<Cotangents> BroadcastOp::vjp(OpBuilder &builder,
                                       ValueRange cotangents, ArrayRef<bool>) {
  Value dy = cotangents[0];
  Type wide = elementOf(dy);
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  Value sum = ReduceOp::create(
      builder, getLoc(), tensorOf(getInput()).clone(wide), ReduceKind::Sum,
      castElements(builder, getLoc(), dy, wide),
      otherDims(tensorOf(getResult()).getRank(), getDims()));
  return Cotangents{
      castElements(builder, getLoc(), sum, cotangentElement(getInput()))};
}

/// Parts of a sum are summed over ranks where that is best, a maximum at once.
FactorRule ReduceOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions operand = builder.factors(shapeOf(getInput()));
  if (getKind() == ReduceKind::Sum)
    builder.linear({0});
  else
    for (int64_t dim : getDims())
      builder.combine(operand[dim].front());
  Dimensions result;
  for (auto [dim, factors] : llvm::enumerate(operand))
    if (!llvm::is_contained(getDims(), int64_t(dim)))
      result.push_back(factors);
  return builder.finish({operand}, {result});
}

FactorRule BroadcastOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  Dimensions result = builder.factors(shapeOf(getResult()));
  Dimensions operand;
  for (int64_t dim : getDims())
    operand.push_back(result[dim]);
  return builder.finish({operand}, {result});
}

/// A maximum of parts is the maximum of their maxima.
Parts ReduceOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                          ArrayRef<int64_t>, TypeRange types) {
  Axes axes;
  for (int64_t factor : getFactorRule().combined)
    llvm::append_range(axes, factors[factor]);
  if (axes.empty())
    return SmallVector<Value>();
  Value part =
      create(builder, getLoc(), types[0], getKind(), getInput(), getDims());
  return SmallVector<Value>{AllReduceOp::create(
      builder, getLoc(), types[0], getKind(), part, axesAttr(builder, axes),
      builder.getStringAttr("maximum of parts"))};
}

Cost ReduceOp::getCost() {
  return streamingCost(*this, elementsOf(getInput()));
}

Cost BroadcastOp::getCost() { return streamingCost(*this, 0); }
