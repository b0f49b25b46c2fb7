// SPDX-License-Identifier: Apache-2.0
//
// The parts of composite ops. Everything is computed in f32 (f64 for f64
// operands) and rounded once at the end; divisions and square roots are exact,
// so that a value that is computed twice has the same bits both times.
#include "ir/rota/Rota.h"

#include <numbers>

using namespace mlir;
using namespace mlir::rota;

namespace {

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

  /// The sum over the last dimension, divided by its size.
  Value rowMean(Value value) {
    int64_t last = shape.size() - 1;
    Value sum = reduce(value, {last});
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

} // namespace

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

/// sqrt(1 / 2), and 1 / sqrt(2 pi).
static constexpr double rootOfHalf = 1 / std::numbers::sqrt2;
static constexpr double normalPeak = std::numbers::inv_sqrtpi * rootOfHalf;

/// `gelu_tanh` is x * sigmoid(w) with w = 2 u = linear * x + cube * x^3, since
/// (1 + tanh(u)) / 2 is the sigmoid of 2 u.
static constexpr double geluLinear = 4 * normalPeak;
static constexpr double geluCube = geluLinear * 0.044715;

namespace {
/// An activation function at x: x times a share of it, which is the sigmoid of
/// some w or, for `gelu`, the share P of a normal distribution below x.
class Activation {
public:
  Activation(Arithmetic &b, ActivationKind kind, Value x)
      : b(b), kind(kind), x(x) {}

  Value value() {
    if (kind == ActivationKind::Gelu)
      return b.mul(x, share());
    Value one = b.splat(1.0, x);
    return b.div(x, b.add(one, b.expOfMinus(inner())));
  }

  Value share() {
    if (kind != ActivationKind::Gelu)
      return b.sigmoid(inner());
    Value half = b.splat(0.5, x);
    Value error = b.erf(b.mul(x, b.splat(rootOfHalf, x)));
    return b.add(half, b.mul(half, error));
  }

  /// The derivative at x, where the share is `share`.
  Value slope(Value share) {
    if (kind == ActivationKind::Gelu) {
      // P + x * exp(-x^2 / 2) / sqrt(2 pi)
      Value power = b.expOfMinus(b.mul(b.splat(0.5, x), square()));
      Value density = b.mul(b.splat(normalPeak, x), power);
      return b.add(share, b.mul(x, density));
    }
    // s * (1 + x * (1 - s) * w')
    Value one = b.splat(1.0, x);
    Value change = b.mul(x, b.sub(one, share));
    if (kind == ActivationKind::GeluTanh)
      change = b.mul(change, polynomial(geluLinear, 3 * geluCube));
    return b.mul(share, b.add(one, change));
  }

private:
  /// The sigmoid's operand w.
  Value inner() {
    if (kind == ActivationKind::Silu)
      return x;
    return b.mul(x, polynomial(geluLinear, geluCube));
  }

  /// constant + factor * x^2.
  Value polynomial(double constant, double factor) {
    return b.add(b.splat(constant, x), b.mul(b.splat(factor, x), square()));
  }

  Value square() {
    if (!squared)
      squared = b.mul(x, x);
    return squared;
  }

  Arithmetic &b;
  ActivationKind kind;
  Value x, squared;
};
} // namespace

FailureOr<SmallVector<Value>> ActivationOp::decompose(OpBuilder &builder) {
  Arithmetic b(builder, getLoc(), getInput().getType());
  Value y = Activation(b, getKind(), b.widen(getInput())).value();
  if (getUp())
    y = b.mul(y, b.widen(getUp()));
  return SmallVector<Value>{b.convert(y, getType())};
}

FailureOr<SmallVector<Value>> ActivationGradOp::decompose(OpBuilder &builder) {
  Arithmetic b(builder, getLoc(), getInput().getType());
  Type type = getInput().getType();
  Value dy = b.widen(getCotangent()), x = b.widen(getInput());
  Activation activation(b, getKind(), x);
  Value share = activation.share(), slope = activation.slope(share);
  if (!getUp())
    return SmallVector<Value>{b.convert(b.mul(dy, slope), type)};
  Value dx = b.mul(b.mul(dy, b.widen(getUp())), slope);
  Value dup = b.mul(dy, b.mul(x, share));
  return SmallVector<Value>{b.convert(dx, type), b.convert(dup, type)};
}
