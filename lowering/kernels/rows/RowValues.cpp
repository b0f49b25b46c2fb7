// SPDX-License-Identifier: Apache-2.0
//
// Code for each value of a kernel's body at a place of the row.
#include "lowering/kernels/rows/RowValues.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace rota::lowering {

/// The type of a scalar (width 0) or vector of `element`.
static Type typeAt(Type element, int64_t width) {
  return width > 0 ? Type(VectorType::get({width}, element)) : element;
}

static Type elementOf(Value value) { return RowBody::elementOf(value); }

static int64_t rankOf(Value value) { return RowBody::rankOf(value); }

Value combineParts(ImplicitLocOpBuilder &b, mlir::rota::ReduceOp reduce,
                   Value left, Value right) {
  if (reduce.getKind() == mlir::rota::ReduceKind::Sum)
    return arith::AddFOp::create(b, left, right);
  return arith::MaximumFOp::create(b, left, right);
}

void RowValues::begin(ImplicitLocOpBuilder &b, ValueRange pointers) {
  operands.assign(pointers.begin(), pointers.end());
  shared.clear();
  Value zero = constant(b, int64_t(0));
  for (BlockArgument argument : body.getOperands())
    if (rankOf(argument) == 0 &&
        body.getMap(argument.getArgNumber()).isConstant())
      shared[argument] = emitArgument(b, argument, {zero, {}, 0, 0, nullptr});
}

Value RowValues::scalar(ImplicitLocOpBuilder &b, Value value, Value row) {
  return wide(b, value, {row, {}, 0, 0, &scalars});
}

void RowValues::emitScalarsOf(ImplicitLocOpBuilder &b, Value value, Value row,
                              llvm::DenseSet<Value> &seen) {
  if (!seen.insert(value).second)
    return;
  if (rankOf(value) == 0) {
    scalar(b, value, row);
    return;
  }
  if (Operation *op = value.getDefiningOp())
    for (Value operand : op->getOperands())
      emitScalarsOf(b, operand, row, seen);
}

void RowValues::setTotal(ImplicitLocOpBuilder &b, mlir::rota::ReduceOp reduce,
                         Value total) {
  Emitted &emitted = scalars[reduce.getResult()];
  if (elementOf(reduce.getResult()).isBF16())
    emitted.narrow = arith::TruncFOp::create(b, b.getBF16Type(), total);
  else
    emitted.wide = total;
}

Value RowValues::stored(ImplicitLocOpBuilder &b, Value value,
                        const Place &place) {
  return elementOf(value).isBF16() ? narrow(b, value, place)
                                   : wide(b, value, place);
}

Value RowValues::indexOf(ImplicitLocOpBuilder &b, Value value, Value row,
                         const Place &place) const {
  if (rankOf(value) == 0)
    return row;
  row = arith::MulIOp::create(b, row, constant(b, body.getStride()));
  return arith::AddIOp::create(b, row, place.column);
}

Value RowValues::wide(ImplicitLocOpBuilder &b, Value value,
                      const Place &place) {
  Emitted &emitted = emit(b, value, place);
  if (!emitted.wide)
    emitted.wide = arith::ExtFOp::create(
        b, typeAt(b.getF32Type(), rankOf(value) ? place.width : 0),
        emitted.narrow);
  return emitted.wide;
}

Value RowValues::narrow(ImplicitLocOpBuilder &b, Value value,
                        const Place &place) {
  Emitted &emitted = emit(b, value, place);
  if (!emitted.narrow)
    emitted.narrow = arith::TruncFOp::create(
        b, typeAt(b.getBF16Type(), rankOf(value) ? place.width : 0),
        emitted.wide);
  return emitted.narrow;
}

RowValues::Emitted &RowValues::emit(ImplicitLocOpBuilder &b, Value value,
                                    const Place &place) {
  Values &values = rankOf(value) == 0 ? scalars : *place.values;
  if (auto found = values.find(value); found != values.end())
    return found->second;
  Place here = place;
  if (rankOf(value) == 0)
    here.width = 0;
  Emitted emitted;
  if (auto argument = dyn_cast<BlockArgument>(value))
    emitted = emitArgument(b, argument, here);
  else if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    emitted = emitConstant(b, constant, here);
  else
    emitted = emitOp(b, value.getDefiningOp(), here);
  return values[value] = emitted;
}

/// `expression` of the row number, as i64 arithmetic.
static Value evaluate(ImplicitLocOpBuilder &b, AffineExpr expression,
                      Value row) {
  if (auto number = dyn_cast<AffineConstantExpr>(expression))
    return constant(b, number.getValue());
  if (isa<AffineDimExpr>(expression))
    return row;
  auto binary = cast<AffineBinaryOpExpr>(expression);
  Value left = evaluate(b, binary.getLHS(), row);
  Value right = evaluate(b, binary.getRHS(), row);
  // Row numbers are not negative, so that division rounds down.
  switch (expression.getKind()) {
  case AffineExprKind::Add:
    return arith::AddIOp::create(b, left, right);
  case AffineExprKind::Mul:
    return arith::MulIOp::create(b, left, right);
  case AffineExprKind::FloorDiv:
    return arith::DivUIOp::create(b, left, right);
  case AffineExprKind::CeilDiv:
    return arith::CeilDivUIOp::create(b, left, right);
  default:
    return arith::RemUIOp::create(b, left, right);
  }
}

RowValues::Emitted RowValues::emitArgument(ImplicitLocOpBuilder &b,
                                           BlockArgument argument,
                                           const Place &place) {
  unsigned number = argument.getArgNumber();
  Value row = evaluate(b, body.getMap(number).getResult(0), place.row);
  Type element = elementOf(argument);
  Value loaded =
      load(b, operands[number], element, indexOf(b, argument, row, place),
           place.width, place.alignment);
  return element.isBF16() ? Emitted{{}, loaded} : Emitted{loaded, {}};
}

RowValues::Emitted RowValues::emitConstant(ImplicitLocOpBuilder &b,
                                           arith::ConstantOp op,
                                           const Place &place) {
  auto splat = cast<SplatElementsAttr>(op.getValue());
  Type element = splat.getElementType();
  auto number = splat.getSplatValue<TypedAttr>();
  if (element.isBF16()) {
    element = b.getF32Type();
    number = b.getF32FloatAttr(splat.getSplatValue<APFloat>().convertToFloat());
  }
  TypedAttr value = number;
  if (place.width > 0)
    value = DenseElementsAttr::get(VectorType::get({place.width}, element),
                                   Attribute(number));
  return {arith::ConstantOp::create(b, value), {}};
}

RowValues::Emitted RowValues::emitOp(ImplicitLocOpBuilder &b, Operation *op,
                                     const Place &place) {
  if (isa<mlir::rota::BroadcastOp>(op)) {
    Value input = op->getOperand(0);
    Value value = wide(b, input, place);
    if (rankOf(input) == 0 && place.width > 0)
      value = splat(b, value, place.width);
    return {value, {}};
  }
  // A reduction of one value per row over no dimension.
  if (isa<mlir::rota::ReduceOp, arith::ExtFOp>(op))
    return {wide(b, op->getOperand(0), place), {}};
  if (isa<arith::TruncFOp>(op))
    return {{}, narrow(b, op->getOperand(0), place)};

  IRMapping mapping;
  for (Value operand : op->getOperands())
    mapping.map(operand, wide(b, operand, place));
  Operation *copy = b.clone(*op, mapping);
  Type element = elementOf(op->getResult(0));
  bool rounded = element.isBF16();
  copy->getResult(0).setType(
      typeAt(rounded ? b.getF32Type() : element, place.width));
  if (!rounded)
    return {copy->getResult(0), {}};
  return {{},
          arith::TruncFOp::create(b, typeAt(element, place.width),
                                  copy->getResult(0))};
}

} // namespace rota::lowering
