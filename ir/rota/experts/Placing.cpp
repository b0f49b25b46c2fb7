// SPDX-License-Identifier: Apache-2.0
//
// The ops that move tokens to the rows of experts and back. The batch divides
// freely; tokens divide, or rows do, by blocks: the number of blocks is then a
// factor of both rows and experts. Each part knows its first row by an offset.
#include "ir/rota/OpFamily.h"
#include "ir/rota/experts/CountedRows.h"

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

/// C1 of the ops between tokens [B, S, E] and rows [B, R, E], and weights and
/// an offset where there are some.
static LogicalResult checkPlaced(Operation *op, Value tokens, Value rows,
                                 Value places, Value weights, Value offset) {
  if (failed(checkRank(op, "tokens", tokens, 3)) ||
      failed(checkRank(op, "rows", rows, 3)) ||
      failed(checkRank(op, "places", places, 3)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(tokens), choices = shapeOf(places);
  if (failed(checkShape(op, "rows", rows,
                        {shape[0], shapeOf(rows)[1], shape[2]})) ||
      failed(checkElement(op, "rows", rows, elementOf(tokens))) ||
      failed(
          checkShape(op, "places", places, {shape[0], shape[1], choices[2]})))
    return failure();
  if (weights && failed(checkShape(op, "weights", weights, choices)))
    return failure();
  return checkOffset(op, offset);
}

LogicalResult DispatchOp::verify() {
  if (failed(checkPlaced(*this, getTokens(), getRows(), getPlaces(),
                         getWeights(), getOffset())))
    return failure();
  // C4 and C5: counts.
  return checkPlacedCounts(*this);
}

LogicalResult CombineOp::verify() {
  if (failed(checkPlaced(*this, getTokens(), getRows(), getPlaces(),
                         getWeights(), getOffset())))
    return failure();
  // C4 and C5: counts.
  return checkPlacedCounts(*this);
}

LogicalResult ChoiceDotOp::verify() {
  if (failed(checkPlaced(*this, getTokens(), getRows(), getPlaces(), Value(),
                         getOffset())))
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
    result[2] =
        ChoiceDotOp::create(builder, op.getLoc(), op.getWeights().getType(),
                            tokens, rows, op.getPlaces(), op.getOffset(),
                            op.getCounts(), op.getBlocks(), op.getFillAttr());
  return result;
}

FailureOr<Cotangents> DispatchOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                      ArrayRef<bool> needed) {
  Value moved;
  if (needed[0])
    moved = CombineOp::create(
        builder, getLoc(), getTokens().getType(), cotangents[0], getPlaces(),
        getWeights(), getOffset(), getCounts(), getBlocks(), getFillAttr());
  return placedCotangents(*this, builder, moved, getTokens(), cotangents[0],
                          needed);
}

FailureOr<Cotangents> CombineOp::vjp(OpBuilder &builder, ValueRange cotangents,
                                     ArrayRef<bool> needed) {
  Value moved;
  if (needed[0])
    moved = DispatchOp::create(
        builder, getLoc(), getRows().getType(), cotangents[0], getPlaces(),
        getWeights(), getOffset(), getCounts(), getBlocks(), getFillAttr());
  return placedCotangents(*this, builder, moved, cotangents[0], getRows(),
                          needed);
}

namespace {
/// Factors of tokens [B, S, E], rows [B, R, E] and choices [B, S, k]. Parts of
/// the tokens, or of the rows, give parts of a sum. Counts [B, X] divide with
/// the rows, by blocks.
struct PlacedFactors {
  Dimensions tokens, rows, choices, counts;

  template <typename Op> PlacedFactors(RuleBuilder &builder, Op op) {
    tokens = builder.factors(shapeOf(op.getTokens()));
    int64_t count = shapeOf(op.getRows())[1], blocks = op.getBlocks();
    SmallVector<int64_t, 1> row{
        builder.numbered(op.getCounts() ? blocks : count)};
    int64_t k = builder.factor(shapeOf(op.getPlaces())[2], false);
    if (op.getCounts()) {
      int64_t experts = shapeOf(op.getCounts())[1] / blocks;
      counts = {tokens[0], {row[0], builder.factor(experts, false)}};
      row.push_back(builder.factor(count / blocks, false));
    }
    rows = {tokens[0], row, tokens[2]};
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

/// The place of the first of this rank's `rows`; null where it has all.
static Value firstRow(FactorRuleOpInterface op, OpBuilder &builder,
                      ArrayRef<Axes> factors, int64_t rows) {
  return firstEntry(op.getLoc(), builder,
                    factors[op.getFactorRule().numbered.front()], rows);
}

Parts DispatchOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                            ArrayRef<int64_t>, TypeRange types) {
  int64_t rows = cast<RankedTensorType>(types[0]).getDimSize(1);
  Value first = firstRow(*this, builder, factors, rows);
  if (!first)
    return SmallVector<Value>();
  return SmallVector<Value>{create(builder, getLoc(), types[0], getTokens(),
                                   getPlaces(), getWeights(), first,
                                   /*counts=*/Value(), 1, FloatAttr())};
}

Parts CombineOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                           ArrayRef<int64_t>, TypeRange types) {
  Value first = firstRow(*this, builder, factors, shapeOf(getRows())[1]);
  if (!first)
    return SmallVector<Value>();
  return SmallVector<Value>{create(builder, getLoc(), types[0], getRows(),
                                   getPlaces(), getWeights(), first,
                                   /*counts=*/Value(), 1, FloatAttr())};
}

Parts ChoiceDotOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                             ArrayRef<int64_t>, TypeRange types) {
  Value first = firstRow(*this, builder, factors, shapeOf(getRows())[1]);
  if (!first)
    return SmallVector<Value>();
  return SmallVector<Value>{create(builder, getLoc(), types[0], getTokens(),
                                   getRows(), getPlaces(), first,
                                   /*counts=*/Value(), 1, FloatAttr())};
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
  Cost cost = rota::streamingCost(op, flops);
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
