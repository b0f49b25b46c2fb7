// SPDX-License-Identifier: Apache-2.0
//
// The rota interfaces of the arith and math ops that models may use, attached
// from outside. All are elementwise. In the formulas dy is the cotangent of y.
#include "ir/rota/OpFamily.h"

#include "mlir/IR/Matchers.h"

#include <numbers>

using namespace mlir;
using namespace mlir::rota;

namespace {
/// Builds a rule's elementwise ops at the op's location.
struct Rule {
  OpBuilder &builder;
  Location loc;

  Value mul(Value a, Value b) const {
    return arith::MulFOp::create(builder, loc, a, b);
  }
  Value div(Value a, Value b) const {
    return arith::DivFOp::create(builder, loc, a, b);
  }
  Value sub(Value a, Value b) const {
    return arith::SubFOp::create(builder, loc, a, b);
  }
  Value neg(Value a) const { return arith::NegFOp::create(builder, loc, a); }
  Value constant(Value like, double value) const {
    return splatConstant(builder, loc, like.getType(), value);
  }
  Value select(Value condition, Value a, Value b) const {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
};
} // namespace

/// The cotangents of all operands of `op`, needed or not.
static Cotangents vjpOf(arith::AddFOp, Rule, Value dy) { return {dy, dy}; }

static Cotangents vjpOf(arith::SubFOp, Rule rule, Value dy) {
  return {dy, rule.neg(dy)};
}

static Cotangents vjpOf(arith::MulFOp op, Rule rule, Value dy) {
  return {rule.mul(dy, op.getRhs()), rule.mul(dy, op.getLhs())};
}

/// y = a/b: da = dy/b, db = -dy*y/b.
static Cotangents vjpOf(arith::DivFOp op, Rule rule, Value dy) {
  Value lhs = rule.div(dy, op.getRhs());
  return {lhs, rule.neg(rule.mul(lhs, op.getResult()))};
}

static Cotangents vjpOf(arith::NegFOp, Rule rule, Value dy) {
  return {rule.neg(dy)};
}

/// Goes to the larger operand, to the left one where they are equal.
static Cotangents vjpOf(arith::MaximumFOp op, Rule rule, Value dy) {
  Value isLeft =
      arith::CmpFOp::create(rule.builder, rule.loc, arith::CmpFPredicate::OGE,
                            op.getLhs(), op.getRhs());
  Value zero = rule.constant(dy, 0.0);
  return {rule.select(isLeft, dy, zero), rule.select(isLeft, zero, dy)};
}

static Cotangents vjpOf(arith::SelectOp op, Rule rule, Value dy) {
  Value zero = rule.constant(dy, 0.0);
  return {Value(), rule.select(op.getCondition(), dy, zero),
          rule.select(op.getCondition(), zero, dy)};
}

/// A comparison is constant almost everywhere.
static Cotangents vjpOf(arith::CmpFOp, Rule, Value) {
  return {Value(), Value()};
}

static Cotangents vjpOf(arith::ExtFOp op, Rule rule, Value dy) {
  return {
      castElements(rule.builder, rule.loc, dy, cotangentElement(op.getIn()))};
}

static Cotangents vjpOf(arith::TruncFOp op, Rule rule, Value dy) {
  return {castElements(rule.builder, rule.loc, dy,
                       getElementTypeOrSelf(op.getIn()))};
}

static Cotangents vjpOf(arith::ConstantOp, Rule, Value) { return {}; }

static Cotangents vjpOf(math::ExpOp op, Rule rule, Value dy) {
  return {rule.mul(dy, op.getResult())};
}

static Cotangents vjpOf(math::LogOp op, Rule rule, Value dy) {
  return {rule.div(dy, op.getOperand())};
}

/// dx = dy / (2 y).
static Cotangents vjpOf(math::SqrtOp op, Rule rule, Value dy) {
  return {rule.div(rule.mul(dy, rule.constant(dy, 0.5)), op.getResult())};
}

/// dx = -dy * y^3 / 2.
static Cotangents vjpOf(math::RsqrtOp op, Rule rule, Value dy) {
  Value y = op.getResult();
  Value cube = rule.mul(rule.mul(y, y), y);
  return {rule.mul(rule.mul(dy, rule.constant(dy, -0.5)), cube)};
}

/// dx = dy * (1 - y^2).
static Cotangents vjpOf(math::TanhOp op, Rule rule, Value dy) {
  Value y = op.getResult();
  return {rule.mul(dy, rule.sub(rule.constant(dy, 1.0), rule.mul(y, y)))};
}

/// dx = dy * 2 / sqrt(pi) * exp(-x^2), in f32 where x is bf16: the constant
/// rounded to bf16 would make every gradient wrong by 0.3 %.
static Cotangents vjpOf(math::ErfOp op, Rule rule, Value dy) {
  Type element = getElementTypeOrSelf(dy);
  Type wide = element.isBF16() ? rule.builder.getF32Type() : element;
  auto cast = [&](Value value, Type type) {
    return castElements(rule.builder, rule.loc, value, type);
  };
  Value x = cast(op.getOperand(), wide);
  Value density =
      math::ExpOp::create(rule.builder, rule.loc, rule.neg(rule.mul(x, x)));
  Value scale = rule.constant(x, 2 * std::numbers::inv_sqrtpi);
  Value dx = rule.mul(cast(dy, wide), rule.mul(scale, density));
  return {cast(dx, element)};
}

/// y = a*b + c.
static Cotangents vjpOf(math::FmaOp op, Rule rule, Value dy) {
  return {rule.mul(dy, op.getB()), rule.mul(dy, op.getA()), dy};
}

/// A constant whose elements are one number other than zero.
static bool isSplatNumber(Value value) {
  APFloat number(0.0);
  return matchPattern(value, m_ConstantFloat(&number)) && !number.isZero();
}

/// False for a sum that has a constant among its terms.
static bool isZeroInPadding(Value value) {
  Operation *op = value.getDefiningOp();
  if (isa_and_present<arith::AddFOp, arith::SubFOp>(op))
    return llvm::all_of(op->getOperands(), isZeroInPadding);
  return !isa_and_present<arith::ConstantOp>(op);
}

/// True for a use in which a number in padding does no harm: it is multiplied
/// by the zero of the other operand, or divides it, at once or as a term of a
/// sum.
static bool isHarmlessInPadding(OpOperand &use) {
  Operation *op = use.getOwner();
  if (isa<arith::AddFOp, arith::SubFOp>(op))
    return llvm::all_of(op->getUses(), isHarmlessInPadding);
  bool isFactor = isa<arith::MulFOp>(op) ||
                  (isa<arith::DivFOp>(op) && use.getOperandNumber() == 1);
  return isFactor &&
         isZeroInPadding(op->getOperand(1 - use.getOperandNumber()));
}

/// In which operands the op is linear. Rounding is not.
static FactorRule factorRuleOf(Operation *op) {
  return elementwiseFactorRule(op);
}
static FactorRule factorRuleOf(arith::AddFOp op) {
  return withPadding(elementwiseFactorRule(op, {{0, 1}}));
}
static FactorRule factorRuleOf(arith::SubFOp op) {
  return withPadding(elementwiseFactorRule(op, {{0, 1}}));
}
static FactorRule factorRuleOf(arith::MulFOp op) {
  return withPadding(elementwiseFactorRule(op, {{0}, {1}}));
}
static FactorRule factorRuleOf(arith::DivFOp op) {
  FactorRule rule = elementwiseFactorRule(op, {{0}});
  return isSplatNumber(op.getRhs()) ? withPadding(std::move(rule)) : rule;
}
static FactorRule factorRuleOf(math::TanhOp op) {
  return withPadding(elementwiseFactorRule(op));
}
static FactorRule factorRuleOf(arith::NegFOp op) {
  return withPadding(elementwiseFactorRule(op, {{0}}));
}
static FactorRule factorRuleOf(arith::ExtFOp op) {
  return withPadding(elementwiseFactorRule(op, {{0}}));
}
static FactorRule factorRuleOf(arith::TruncFOp op) {
  return withPadding(elementwiseFactorRule(op));
}
static FactorRule factorRuleOf(arith::SelectOp op) {
  return elementwiseFactorRule(op, {{1, 2}});
}
static FactorRule factorRuleOf(math::FmaOp op) {
  return elementwiseFactorRule(op, {{0, 2}, {1, 2}});
}

/// The elements of a constant that are not all the same have places. The
/// padding of others holds their number.
static FactorRule factorRuleOf(arith::ConstantOp op) {
  FactorRule rule = elementwiseFactorRule(op);
  if (isSplatNumber(op.getResult()) &&
      llvm::all_of(op->getUses(), isHarmlessInPadding))
    return withPadding(std::move(rule));
  if (!isa<SplatElementsAttr>(op.getValue()))
    for (int64_t factor = 0, end = rule.sizes.size(); factor < end; ++factor)
      rule.indivisible.push_back(factor);
  return rule;
}

namespace {
template <typename OpTy>
struct VjpModel
    : DifferentiableOpInterface::ExternalModel<VjpModel<OpTy>, OpTy> {
  FailureOr<Cotangents> vjp(Operation *op, OpBuilder &builder,
                            ValueRange cotangents, ArrayRef<bool>) const {
    return vjpOf(cast<OpTy>(op), Rule{builder, op->getLoc()}, cotangents[0]);
  }
};

template <typename OpTy>
struct FactorModel
    : FactorRuleOpInterface::ExternalModel<FactorModel<OpTy>, OpTy> {
  FactorRule getFactorRule(Operation *op) const {
    return factorRuleOf(cast<OpTy>(op));
  }
};

/// A constant holds its size.
struct ConstantPartModel
    : PartitionOpInterface::ExternalModel<ConstantPartModel,
                                          arith::ConstantOp> {
  FailureOr<SmallVector<Value>> buildPart(Operation *op, OpBuilder &builder,
                                          ArrayRef<SmallVector<AxisRefAttr, 2>>,
                                          ArrayRef<int64_t>,
                                          TypeRange types) const {
    auto whole =
        cast<SplatElementsAttr>(cast<arith::ConstantOp>(op).getValue());
    auto part = whole.resizeSplat(cast<ShapedType>(types[0]));
    return SmallVector<Value>{
        arith::ConstantOp::create(builder, op->getLoc(), part)};
  }
};

/// A table of the object file.
struct ConstantTaskModel
    : TaskOpInterface::ExternalModel<ConstantTaskModel, arith::ConstantOp> {
  TaskForm getTaskForm(Operation *) const { return TaskForm::Address; }
};

/// One operation an element; two in a multiply-add; none in a constant, which
/// moves no bytes either.
template <typename OpTy>
struct CostModel : CostOpInterface::ExternalModel<CostModel<OpTy>, OpTy> {
  Cost getCost(Operation *op) const {
    if (isa<arith::ConstantOp>(op))
      return {};
    auto tensor = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    double elements = tensor ? double(tensor.getNumElements()) : 1.0;
    bool isFma = isa<math::FmaOp>(op);
    bool isSpecial = isa<arith::DivFOp>(op) ||
                     (isa<math::MathDialect>(op->getDialect()) && !isFma);
    return streamingCost(op, isFma ? 2 * elements : elements,
                         isSpecial ? elements : 0);
  }
};
} // namespace

template <typename... OpTys> static void attach(MLIRContext *context) {
  (OpTys::template attachInterface<VjpModel<OpTys>, FactorModel<OpTys>,
                                   CostModel<OpTys>>(*context),
   ...);
}

void mlir::rota::registerArithModels(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    attach<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp,
           arith::NegFOp, arith::MaximumFOp, arith::SelectOp, arith::CmpFOp,
           arith::ExtFOp, arith::TruncFOp, arith::ConstantOp>(context);
    arith::ConstantOp::attachInterface<ConstantPartModel, ConstantTaskModel>(
        *context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    attach<math::ExpOp, math::LogOp, math::SqrtOp, math::RsqrtOp, math::TanhOp,
           math::ErfOp, math::FmaOp>(context);
  });
}
