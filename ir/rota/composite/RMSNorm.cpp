// SPDX-License-Identifier: Apache-2.0
//
// Normalization of rows.
#include "ir/rota/OpFamily.h"
#include "ir/rota/composite/Arithmetic.h"
#include "runtime/text/Text.h"

using namespace mlir;
using namespace mlir::rota;

static LogicalResult checkEpsilon(Operation *op, const APFloat &epsilon) {
  if (epsilon.isFinite() && !epsilon.isNegative())
    return success();
  return op->emitOpError("expected an epsilon of at least 0, got ")
         << ::rota::numberText(epsilon.convertToDouble());
}

LogicalResult RMSNormOp::verify() {
  if (tensorOf(getInput()).getRank() < 1)
    return emitOpError("expected an operand of rank 1 or more");
  // C1: the gain is the last dimension.
  if (failed(
          checkShape(*this, "a gain", getGain(), shapeOf(getInput()).back())))
    return failure();
  // C2: one type.
  if (failed(checkType(*this, "a result", getResult(), getInput().getType())))
    return failure();
  // C3: epsilon is not negative.
  return checkEpsilon(*this, getEpsilon());
}

LogicalResult RMSNormGradOp::verify() {
  if (tensorOf(getInput()).getRank() < 1)
    return emitOpError("expected an operand of rank 1 or more");
  // C1: the gain is the last dimension.
  if (failed(
          checkShape(*this, "a gain", getGain(), shapeOf(getInput()).back())))
    return failure();
  // C2: types agree.
  if (failed(checkType(*this, "a cotangent", getCotangent(),
                       getInput().getType())) ||
      failed(checkType(*this, "an input cotangent", getInputCotangent(),
                       getInput().getType())) ||
      failed(checkShape(*this, "a gain cotangent", getGainCotangent(),
                        shapeOf(getGain()))))
    return failure();
  return checkEpsilon(*this, getEpsilon());
}

FailureOr<Cotangents> RMSNormOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                     ArrayRef<bool> needed) {
  Type wide = elementOf(getGain());
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  auto grad = RMSNormGradOp::create(
      builder, getLoc(),
      TypeRange{getInput().getType(), tensorOf(getGain()).clone(wide)},
      cotangents[0], getInput(), getGain(), getEpsilonAttr(),
      getCenteredAttr());
  Cotangents result(getNumOperands());
  if (needed[0])
    result[0] = grad.getInputCotangent();
  if (needed[1])
    result[1] = castElements(builder, getLoc(), grad.getGainCotangent(),
                             cotangentElement(getGain()));
  return result;
}

FactorRule RMSNormOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({1});
  Dimensions rows = builder.rowFactors(shapeOf(getInput()));
  return builder.finish({rows, {rows.back()}}, {rows});
}

FactorRule RMSNormGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  Dimensions rows = builder.rowFactors(shapeOf(getInput()));
  Dimensions gain{rows.back()};
  return builder.finish({rows, rows, gain}, {rows, gain});
}

FailureOr<SmallVector<Value>> RMSNormOp::decompose(OpBuilder &builder) {
  Arithmetic b(builder, getLoc(), getInput().getType());
  Value x = b.widen(getInput());
  if (getCentered())
    x = b.centered(x);
  Value r = b.inverseRootMeanSquare(x, getEpsilon().convertToDouble());
  Value gain = b.forEachRow(b.widen(getGain()));
  Value y = b.mul(b.mul(x, b.alongRow(r)), gain);
  return SmallVector<Value>{b.convert(y, getType())};
}

FailureOr<SmallVector<Value>> RMSNormGradOp::decompose(OpBuilder &builder) {
  Arithmetic b(builder, getLoc(), getInput().getType());
  Value dy = b.widen(getCotangent());
  Value x = b.widen(getInput());
  if (getCentered())
    x = b.centered(x);
  Value r = b.inverseRootMeanSquare(x, getEpsilon().convertToDouble());
  Value g = b.mul(dy, b.forEachRow(b.widen(getGain())));
  // r * g - x * (r^3 * mean(g * x)); centered, less its mean, in which the
  // second term has no part.
  Value shrink = b.mul(b.mul(r, b.mul(r, r)), b.rowMean(b.mul(g, x)));
  Value alongRow = b.alongRow(r);
  if (getCentered())
    g = b.centered(g);
  Value dx = b.sub(b.mul(alongRow, g), b.mul(x, b.alongRow(shrink)));
  Value dgain = b.sumOfRows(b.mul(dy, b.mul(x, alongRow)));
  return SmallVector<Value>{b.convert(dx, getInputCotangent().getType()),
                            b.convert(dgain, getGainCotangent().getType())};
}

/// x*x, +, *r, *gain; the mean: +, -.
Cost RMSNormOp::getCost() {
  return streamingCost(*this, (getCentered() ? 6 : 4) * elementsOf(getInput()));
}

/// x*x, +; dy*gain, *x, +; r*g, x*c, -; dy*x, *r, +; two means: +, -.
Cost RMSNormGradOp::getCost() {
  return streamingCost(*this,
                       (getCentered() ? 15 : 11) * elementsOf(getInput()));
}
