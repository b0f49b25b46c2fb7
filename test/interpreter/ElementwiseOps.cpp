// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops: arith and math on tensors.
#include "test/interpreter/Interpreter.h"

#include <cmath>

using namespace ::rota::interpreter;
using namespace mlir;

void OpTable::runElementwise(Operation *op,
                             double (*function)(double, double, double),
                             Frame &frame) {
  auto operand = [&](unsigned index) -> const Tensor * {
    return index < op->getNumOperands() ? &frame.get(op->getOperand(index))
                                        : nullptr;
  };
  const Tensor *a = operand(0), *b = operand(1), *c = operand(2);
  Tensor result(shapeOf(op->getResult(0)));
  for (int64_t i = 0; i < result.size(); ++i)
    result[i] = function((*a)[i], b ? (*b)[i] : 0, c ? (*c)[i] : 0);
  frame.set(op->getResult(0), std::move(result));
}

static LogicalResult constant(arith::ConstantOp op, Frame &frame) {
  auto values = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!values)
    return op.emitOpError("the interpreter runs dense constants, got ")
           << op.getValue();
  Tensor result(shapeOf(op.getResult()));
  int64_t i = 0;
  if (isa<FloatType>(values.getElementType()))
    for (APFloat value : values.getValues<APFloat>()) {
      bool losesInfo;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                    &losesInfo);
      result[i++] = value.convertToDouble();
    }
  else
    for (const APInt &value : values.getValues<APInt>())
      result[i++] = value.getBitWidth() == 1 ? double(value.getZExtValue())
                                             : double(value.getSExtValue());
  frame.set(op.getResult(), std::move(result));
  return success();
}

/// Ordered predicates are false and unordered ones true when an operand is NaN.
static bool compare(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return unordered || a != b;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("every predicate is listed");
}

static void cmpf(arith::CmpFOp op, Frame &frame) {
  const Tensor &a = frame.get(op.getLhs()), &b = frame.get(op.getRhs());
  Tensor result(a.shape);
  for (int64_t i = 0; i < result.size(); ++i)
    result[i] = compare(op.getPredicate(), a[i], b[i]);
  frame.set(op.getResult(), std::move(result));
}

/// NaN wins.
static double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
}

static double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
}

static void addArithOps(OpTable &table) {
  table.add(constant);
  table.add(cmpf);
  table.addElementwise<arith::AddFOp>(
      [](double a, double b, double) { return a + b; });
  table.addElementwise<arith::SubFOp>(
      [](double a, double b, double) { return a - b; });
  table.addElementwise<arith::MulFOp>(
      [](double a, double b, double) { return a * b; });
  table.addElementwise<arith::DivFOp>(
      [](double a, double b, double) { return a / b; });
  table.addElementwise<arith::NegFOp>(
      [](double a, double, double) { return -a; });
  table.addElementwise<arith::MaximumFOp>(
      [](double a, double b, double) { return maximum(a, b); });
  table.addElementwise<arith::MinimumFOp>(
      [](double a, double b, double) { return minimum(a, b); });
  table.addElementwise<arith::MaxNumFOp>(
      [](double a, double b, double) { return std::fmax(a, b); });
  table.addElementwise<arith::MinNumFOp>(
      [](double a, double b, double) { return std::fmin(a, b); });
  table.addElementwise<arith::SelectOp>(
      [](double condition, double a, double b) { return condition ? a : b; });
  // Values are f64 whatever their type; Frame::set rounds where asked.
  table.addElementwise<arith::ExtFOp>(
      [](double a, double, double) { return a; });
  table.addElementwise<arith::TruncFOp>(
      [](double a, double, double) { return a; });
  table.addElementwise<arith::SIToFPOp>(
      [](double a, double, double) { return a; });
  table.addElementwise<arith::UIToFPOp>(
      [](double a, double, double) { return a; });
}

static void addMathOps(OpTable &table) {
  table.addElementwise<math::ExpOp>(
      [](double a, double, double) { return std::exp(a); });
  table.addElementwise<math::Exp2Op>(
      [](double a, double, double) { return std::exp2(a); });
  table.addElementwise<math::ExpM1Op>(
      [](double a, double, double) { return std::expm1(a); });
  table.addElementwise<math::LogOp>(
      [](double a, double, double) { return std::log(a); });
  table.addElementwise<math::Log1pOp>(
      [](double a, double, double) { return std::log1p(a); });
  table.addElementwise<math::Log2Op>(
      [](double a, double, double) { return std::log2(a); });
  table.addElementwise<math::SqrtOp>(
      [](double a, double, double) { return std::sqrt(a); });
  table.addElementwise<math::RsqrtOp>(
      [](double a, double, double) { return 1 / std::sqrt(a); });
  table.addElementwise<math::TanhOp>(
      [](double a, double, double) { return std::tanh(a); });
  table.addElementwise<math::SinOp>(
      [](double a, double, double) { return std::sin(a); });
  table.addElementwise<math::CosOp>(
      [](double a, double, double) { return std::cos(a); });
  table.addElementwise<math::ErfOp>(
      [](double a, double, double) { return std::erf(a); });
  table.addElementwise<math::AbsFOp>(
      [](double a, double, double) { return std::abs(a); });
  table.addElementwise<math::PowFOp>(
      [](double a, double b, double) { return std::pow(a, b); });
  table.addElementwise<math::FmaOp>(
      [](double a, double b, double c) { return std::fma(a, b, c); });
}

void ::rota::interpreter::addElementwiseOps(OpTable &table) {
  addArithOps(table);
  addMathOps(table);
}
