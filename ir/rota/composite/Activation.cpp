// SPDX-License-Identifier: Apache-2.0
//
// Activation functions, gated or not.
#include "ir/rota/OpFamily.h"
#include "ir/rota/composite/Arithmetic.h"

#include <numbers>

using namespace mlir;
using namespace mlir::rota;

LogicalResult ActivationGradOp::verify() {
  // C1: a cotangent of up where there is an up.
  if (bool(getUp()) == bool(getUpCotangent()))
    return success();
  return emitOpError("expected ")
         << (getUp() ? 2 : 1) << " results for " << getNumOperands()
         << " operands, got " << getNumResults();
}

FailureOr<Cotangents> ActivationOp::vjp(OpBuilder &builder,
                                        ValueRange cotangents,
                                        ArrayRef<bool> needed) {
  auto grad =
      ActivationGradOp::create(builder, getLoc(), getOperandTypes(), getKind(),
                               cotangents[0], getInput(), getUp());
  Cotangents result(getNumOperands());
  for (auto [index, cotangent] : llvm::enumerate(grad.getResults()))
    if (needed[index])
      result[index] = cotangent;
  return result;
}

/// Linear in the operand that is gated.
FactorRule ActivationOp::getFactorRule() {
  return withPadding(getUp() ? elementwiseFactorRule(*this, {{1}})
                             : elementwiseFactorRule(*this));
}

FactorRule ActivationGradOp::getFactorRule() {
  return withPadding(elementwiseFactorRule(*this, {{0}}));
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

/// Operations of an activation function and of its derivative, which computes
/// some of the former: silu is negate, exp, +, / and s, 1-s, x*, 1+, *.
static std::pair<double, double> activationFlops(ActivationKind kind) {
  switch (kind) {
  case ActivationKind::Silu:
    return {4, 8};
  case ActivationKind::Gelu: // x/sqrt(2), erf, /2, +, *x; x*x, /2, exp, *, *x,
                             // +
    return {5, 10};
  case ActivationKind::GeluTanh: // x*x, *, +, *x; then as silu, w' is 3
    return {8, 15};
  }
  llvm_unreachable("every activation is listed");
}

/// Functions of each: exp and /, or erf; of Gelu's derivative exp, too.
static std::pair<double, double> specialFunctions(ActivationKind kind) {
  return {kind == ActivationKind::Gelu ? 1 : 2, 2};
}

Cost ActivationOp::getCost() {
  double flops = activationFlops(getKind()).first + (getUp() ? 1 : 0);
  double elements = elementsOf(getInput());
  return streamingCost(*this, flops * elements,
                       specialFunctions(getKind()).first * elements);
}

/// dy * f'; gated dy * up besides, and dy * f.
Cost ActivationGradOp::getCost() {
  double flops = activationFlops(getKind()).second + 1;
  if (getUp())
    flops += 3;
  double elements = elementsOf(getInput());
  return streamingCost(*this, flops * elements,
                       specialFunctions(getKind()).second * elements);
}
