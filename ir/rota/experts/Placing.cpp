// SPDX-License-Identifier: Apache-2.0
//
// The ops that move tokens to the rows of experts and back. The batch and parts
// of its sequences divide freely; the tokens of a part divide, or rows do, by
// blocks: the number of blocks is then a factor of both rows and experts. A
// rank with some of the blocks knows its first row by an offset.
#include "ir/rota/OpFamily.h"
#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/experts/Parts.h"
#include "ir/rota/experts/WeighedRows.h"

using namespace mlir;
using namespace mlir::rota;

/// Counts of the rows of a choice, where an op has them.
template <typename Op> static LogicalResult checkPlacedCounts(Op op) {
  if (op.getCounts())
    return verifyCountedRows(op, op.getRows(), op.getCounts(), op.getBlocks(),
                             op.getFill());
  if (op.getBlocks() == 1 && !op.getFill())
    return success();
  return op.emitOpError("expected counts with blocks or a fill, got none");
}

/// C1 of the ops between tokens [B, S, E] and rows [Q, R, E], and weights and
/// an offset where there are some.
template <typename Op> static LogicalResult checkPlaced(Op op, Value weights) {
  Value tokens = op.getTokens(), rows = op.getRows(), places = op.getPlaces();
  if (failed(checkRank(op, "tokens", tokens, 3)) ||
      failed(checkRank(op, "rows", rows, 3)) ||
      failed(checkRank(op, "places", places, 3)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(tokens), choices = shapeOf(places);
  if (failed(verifyParts(op, op.getParts(), shape[1])) ||
      failed(checkShape(
          op, "rows", rows,
          {shape[0] * int64_t(op.getParts()), shapeOf(rows)[1], shape[2]})) ||
      failed(checkElement(op, "rows", rows, elementOf(tokens))) ||
      failed(
          checkShape(op, "places", places, {shape[0], shape[1], choices[2]})))
    return failure();
  if (weights && failed(checkShape(op, "weights", weights, choices)))
    return failure();
  return checkOffset(op, op.getOffset());
}

LogicalResult DispatchOp::verify() {
  if (failed(checkPlaced(*this, getWeights())))
    return failure();
  // C4 and C5: counts.
  return checkPlacedCounts(*this);
}

LogicalResult CombineOp::verify() {
  if (failed(checkPlaced(*this, getWeights())))
    return failure();
  // C4 and C5: counts.
  return checkPlacedCounts(*this);
}

LogicalResult ChoiceDotOp::verify() {
  if (failed(checkPlaced(*this, /*weights=*/Value())))
    return failure();
  // C3 and C4: counts.
  if (failed(checkPlacedCounts(*this)))
    return failure();
  return checkShape(*this, "a result", getResult(), shapeOf(getPlaces()));
}

/// The cotangents of the operands of dispatch or combine: `moved` is that of
/// what they move; a weight's is the dot product of a token and a row.
template <typename Op>
static Cotangents placedCotangents(Op op, OpBuilder &builder, Value moved,
                                   Value tokens, Value rows,
                                   ArrayRef<bool> needed) {
  Cotangents result(op->getNumOperands());
  result[0] = moved;
  if (op.getWeights() && needed[2])
    result[2] = ChoiceDotOp::create(
        builder, op.getLoc(), op.getWeights().getType(), tokens, rows,
        op.getPlaces(), op.getOffset(), op.getCounts(), op.getBlocks(),
        op.getFillAttr(), op.getParts());
  return result;
}

FailureOr<Cotangents> DispatchOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                      ArrayRef<bool> needed) {
  Value moved;
  if (needed[0])
    moved =
        CombineOp::create(builder, getLoc(), getTokens().getType(),
                          cotangents[0], getPlaces(), getWeights(), getOffset(),
                          getCounts(), getBlocks(), getFillAttr(), getParts());
  return placedCotangents(*this, builder, moved, getTokens(), cotangents[0],
                          needed);
}

/// The cotangents of rows and weights from the cotangents of tokens as rows and
/// a weight for each row: each row's dot product with its cotangent goes back.
/// No use of rows that a product makes is left (WeighedRows.h). Others stay
/// where they are made: where they travel between ranks, their experts' has
/// them and their cotangents.
static Cotangents cotangentsOfRows(CombineOp op, OpBuilder &builder, Value dy,
                                   std::optional<MadeRows> made) {
  Location loc = op.getLoc();
  RankedTensorType rows = tensorOf(op.getRows()),
                   weights = tensorOf(op.getWeights());
  Type wide = weights.getElementType();
  auto dispatch = [&](Value tokens, Value weights) -> Value {
    RankedTensorType type = tensorOf(tokens);
    return DispatchOp::create(
        builder, loc,
        type.clone(
            {rows.getDimSize(0), rows.getDimSize(1), type.getDimSize(2)}),
        tokens, op.getPlaces(), weights, op.getOffset(), op.getCounts(),
        op.getBlocks(), op.getFillAttr(), op.getParts());
  };
  Value ones = splatConstant(
      builder, loc,
      weights.clone({weights.getDimSize(0), weights.getDimSize(1), 1}), 1.0);
  Value moved = dispatch(dy, /*weights=*/Value());
  Value ofRows = ReshapeOp::create(builder, loc,
                                   weights.clone(rows.getShape().drop_back()),
                                   dispatch(ones, op.getWeights()));
  Type column = weights.clone({rows.getDimSize(0), rows.getDimSize(1), 1});
  Value dots =
      made ? made->dots(builder, loc, moved, wide)
           : RowDotOp::create(builder, loc, column, moved, op.getRows());
  Cotangents result(op->getNumOperands());
  result[0] =
      WeighedRows{moved, ofRows}.build(builder, loc, rows.getElementType());
  result[2] = ChoiceDotOp::create(
      builder, loc, weights, ones, dots, op.getPlaces(), op.getOffset(),
      op.getCounts(), op.getBlocks(), op.getFillAttr(), op.getParts());
  return result;
}

FailureOr<Cotangents> CombineOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                     ArrayRef<bool> needed) {
  if (getWeights() && needed[0] && needed[2]) {
    std::optional<MadeRows> made = MadeRows::find(getRows());
    if (made || getBlocks() > 1)
      return cotangentsOfRows(*this, builder, cotangents[0], made);
  }
  Value moved;
  if (needed[0])
    moved = DispatchOp::create(builder, getLoc(), getRows().getType(),
                               cotangents[0], getPlaces(), getWeights(),
                               getOffset(), getCounts(), getBlocks(),
                               getFillAttr(), getParts());
  return placedCotangents(*this, builder, moved, cotangents[0], getRows(),
                          needed);
}

namespace {
/// Factors of tokens [B, S, E], rows [Q, R, E] and choices [B, S, k]. Some of
/// the tokens of a part, or of its rows, give parts of a sum. Counts [Q, X]
/// divide with the rows, by blocks.
struct PlacedFactors {
  Dimensions tokens, rows, choices, counts;

  template <typename Op> PlacedFactors(RuleBuilder &builder, Op op) {
    SmallVector<int64_t> sizes(shapeOf(op.getTokens()));
    sizes[1] /= int64_t(op.getParts());
    tokens = builder.factors(sizes);
    int64_t count = shapeOf(op.getRows())[1], blocks = op.getBlocks();
    SmallVector<int64_t, 1> row{
        builder.numbered(op.getCounts() ? blocks : count)};
    int64_t k = builder.factor(shapeOf(op.getPlaces())[2], false);
    if (op.getCounts()) {
      int64_t experts = shapeOf(op.getCounts())[1] / blocks;
      counts = {{}, {row[0], builder.factor(experts, false)}};
      row.push_back(builder.factor(count / blocks, false));
    }
    SmallVector<int64_t, 1> sequences =
        partFactors(builder, op.getParts(), tokens);
    rows = {sequences, row, tokens[2]};
    if (op.getCounts())
      counts[0] = sequences;
    choices = {tokens[0], tokens[1], {k}};
  }

  /// `list` with the dimensions of an offset and counts, where `op` has them.
  template <typename Op>
  SmallVector<Dimensions> operands(Op op, SmallVector<Dimensions> list) const {
    list = withOffset(std::move(list), op.getOffset());
    if (op.getCounts())
      list.push_back(counts);
    return list;
  }

  /// `operands` for an op that may have weights as its last operand before the
  /// offset.
  template <typename Op>
  SmallVector<Dimensions> weighed(Op op, const Dimensions &moved) const {
    SmallVector<Dimensions> list{moved, choices};
    if (op.getWeights())
      list.push_back(choices);
    return operands(op, std::move(list));
  }
};
} // namespace

FactorRule DispatchOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  PlacedFactors of(builder, *this);
  return builder.finish(of.weighed(*this, of.tokens), {of.rows});
}

FactorRule CombineOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  PlacedFactors of(builder, *this);
  return builder.finish(of.weighed(*this, of.rows), {of.tokens});
}

FactorRule ChoiceDotOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  builder.linear({1});
  PlacedFactors of(builder, *this);
  return builder.finish(of.operands(*this, {of.tokens, of.rows, of.choices}),
                        {of.choices});
}

/// Gives `op` the parts of sequences of one rank. The place of the first of its
/// `rows`; null where it has all.
template <typename Op>
static Value firstRow(Op op, OpBuilder &builder, ArrayRef<Axes> factors,
                      int64_t rows) {
  (void)divideParts(op, factors);
  return firstEntry(op.getLoc(), builder,
                    factors[op.getFactorRule().numbered.front()], rows);
}

Parts DispatchOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                            ArrayRef<int64_t>, TypeRange types) {
  int64_t rows = cast<RankedTensorType>(types[0]).getDimSize(1);
  Value first = firstRow(*this, builder, factors, rows);
  if (!first)
    return SmallVector<Value>();
  return SmallVector<Value>{create(
      builder, getLoc(), types[0], getTokens(), getPlaces(), getWeights(),
      first, /*counts=*/Value(), 1, FloatAttr(), getParts())};
}

Parts CombineOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                           ArrayRef<int64_t>, TypeRange types) {
  Value first = firstRow(*this, builder, factors, shapeOf(getRows())[1]);
  if (!first)
    return SmallVector<Value>();
  return SmallVector<Value>{create(
      builder, getLoc(), types[0], getRows(), getPlaces(), getWeights(), first,
      /*counts=*/Value(), 1, FloatAttr(), getParts())};
}

Parts ChoiceDotOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                             ArrayRef<int64_t>, TypeRange types) {
  Value first = firstRow(*this, builder, factors, shapeOf(getRows())[1]);
  if (!first)
    return SmallVector<Value>();
  return SmallVector<Value>{create(
      builder, getLoc(), types[0], getTokens(), getRows(), getPlaces(), first,
      /*counts=*/Value(), 1, FloatAttr(), getParts())};
}

/// Elements of the rows that choices have: all choices have one, if there are
/// so many rows.
static double placedElements(Value places, Value rows) {
  return std::min(elementsOf(places) * double(lastDimension(rows)),
                  elementsOf(rows));
}

/// The bytes of all operands and results, but of `moved` elements of `operand`.
static Cost placedCost(Operation *op, double flops, double moved,
                       Value operand) {
  Cost cost = mlir::rota::streamingCost(op, flops);
  double elements = elementsOf(operand);
  cost.bytesRead += (moved - elements) * bytesOf(operand) / elements;
  return cost;
}

/// Reads a token for each choice; a product with its weight.
Cost DispatchOp::getCost() {
  double moved = placedElements(getPlaces(), getRows());
  return placedCost(*this, getWeights() ? moved : 0, moved, getTokens());
}

/// Reads the rows with a place alone; a product with the weight, a sum.
Cost CombineOp::getCost() {
  double moved = placedElements(getPlaces(), getRows());
  return placedCost(*this, (getWeights() ? 2 : 1) * moved, moved, getRows());
}

/// Reads the rows of the choices; a multiply-add an element.
Cost ChoiceDotOp::getCost() {
  double moved = placedElements(getPlaces(), getRows());
  return placedCost(*this, 2 * moved, moved, getRows());
}
