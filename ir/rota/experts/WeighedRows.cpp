// SPDX-License-Identifier: Apache-2.0
//
// Products and dot products of weighed rows.
#include "ir/rota/experts/WeighedRows.h"
#include "ir/rota/OpFamily.h"

using namespace mlir;
using namespace mlir::rota;

/// The operand of `Op` that makes `value`, or `value` itself.
template <typename Op> static Value without(Value value) {
  auto op = value.getDefiningOp<Op>();
  return op ? Value(op->getOperand(0)) : value;
}

std::optional<WeighedRows> WeighedRows::match(Value value) {
  auto product = without<arith::TruncFOp>(value).getDefiningOp<arith::MulFOp>();
  if (!product)
    return std::nullopt;
  auto repeated = product.getRhs().getDefiningOp<BroadcastOp>();
  if (!repeated || tensorOf(value).getRank() != 3 ||
      repeated.getDims() != ArrayRef<int64_t>{0, 1})
    return std::nullopt;
  return WeighedRows{without<arith::ExtFOp>(product.getLhs()),
                     repeated.getInput()};
}

Value WeighedRows::build(OpBuilder &builder, Location loc, Type element) const {
  Type wide = elementOf(weights);
  Value repeated = BroadcastOp::create(builder, loc, tensorOf(rows).clone(wide),
                                       weights, ArrayRef<int64_t>{0, 1});
  Value product = arith::MulFOp::create(
      builder, loc, castElements(builder, loc, rows, wide), repeated);
  return castElements(builder, loc, product, element);
}

std::optional<MadeRows> MadeRows::find(Value rows) {
  MadeRows made;
  rows = without<NameOp>(rows);
  if (auto biased = rows.getDefiningOp<GroupedBiasOp>()) {
    made.bias = biased.getBias();
    rows = without<NameOp>(biased.getRows());
  }
  made.product = rows.getDefiningOp<GroupedProductOp>();
  if (!made.product)
    return std::nullopt;
  return made;
}

Value MadeRows::dots(OpBuilder &builder, Location loc, Value cotangent,
                     Type element) {
  Value operand = product.getRows();
  RankedTensorType rows = tensorOf(cotangent);
  auto type = RankedTensorType::get({rows.getDimSize(0), rows.getDimSize(1), 1},
                                    element);
  Value back =
      castElements(builder, loc, backThrough(product, builder, cotangent),
                   elementOf(operand));
  Value sum = RowDotOp::create(builder, loc, type, back, operand);
  if (!bias)
    return sum;
  // A product with a matrix of one column for each expert.
  RankedTensorType biases = tensorOf(bias);
  Value column = ReshapeOp::create(
      builder, loc,
      biases.clone({biases.getDimSize(0), 1, biases.getDimSize(1)}), bias);
  Value ofBias = GroupedProductOp::create(
      builder, loc, type, cotangent,
      castElements(builder, loc, column, elementOf(cotangent)),
      product.getCounts(), product.getOffset(), /*transposed=*/true,
      product.getBlocks(), product.getFillAttr());
  return arith::AddFOp::create(builder, loc, sum, ofBias);
}

Value mlir::rota::backThrough(GroupedProductOp product, OpBuilder &builder,
                              Value cotangent) {
  Value rows = product.getRows();
  cotangent =
      castElements(builder, product.getLoc(), cotangent, elementOf(rows));
  for (Operation *user : cotangent.getUsers()) {
    auto known = dyn_cast<GroupedProductOp>(user);
    if (known && known.getRows() == cotangent &&
        known.getWeights() == product.getWeights() &&
        known.getTransposed() != product.getTransposed())
      return known;
  }
  return GroupedProductOp::create(
      builder, product.getLoc(), tensorOf(rows).clone(cotangentElement(rows)),
      cotangent, product.getWeights(), product.getCounts(), product.getOffset(),
      !product.getTransposed(), product.getBlocks(), product.getFillAttr());
}
