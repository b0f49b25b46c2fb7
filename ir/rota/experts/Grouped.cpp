// SPDX-License-Identifier: Apache-2.0
//
// Products of rows and biases of rows by expert. Experts and the rows of a
// sequence divide together, by blocks: the number of blocks is a factor of
// both.
#include "ir/rota/OpFamily.h"
#include "ir/rota/composite/Arithmetic.h"
#include "ir/rota/experts/CountedRows.h"
#include "ir/rota/experts/WeighedRows.h"

using namespace mlir;
using namespace mlir::rota;

/// C1 and C2 of grouped ops: rows [B, R, ...], counts [B, X].
static LogicalResult checkGroups(Operation *op, Value rows, Value counts,
                                 int64_t experts, int64_t blocks) {
  if (failed(checkRank(op, "rows", rows, 3)) ||
      failed(checkShape(op, "counts", counts, {shapeOf(rows)[0], experts})))
    return failure();
  return verifyBlocks(op, blocks, shapeOf(rows)[1], experts);
}

LogicalResult RowDotOp::verify() {
  // C1: operands [B, R, E], a result [B, R, 1].
  if (failed(checkRank(*this, "rows", getLhs(), 3)))
    return failure();
  ArrayRef<int64_t> shape = shapeOf(getLhs());
  return checkShape(*this, "a result", getResult(), {shape[0], shape[1], 1});
}

LogicalResult GroupedProductOp::verify() {
  if (failed(checkRank(*this, "rows", getRows(), 3)) ||
      failed(checkRank(*this, "weights", getWeights(), 3)))
    return failure();
  ArrayRef<int64_t> rows = shapeOf(getRows()), weights = shapeOf(getWeights());
  int64_t width = weights[getTransposed() ? 1 : 2];
  SmallVector<int64_t, 3> expected{weights[0], rows[2], width};
  if (getTransposed())
    std::swap(expected[1], expected[2]);
  if (failed(checkShape(*this, "weights", getWeights(), expected)) ||
      failed(checkShape(*this, "a result", getResult(),
                        {rows[0], rows[1], width})) ||
      failed(
          checkGroups(*this, getRows(), getCounts(), weights[0], getBlocks())))
    return failure();
  // C3: one element type.
  if (failed(
          checkElement(*this, "weights", getWeights(), elementOf(getRows()))))
    return failure();
  if (failed(verifyFill(*this, getFill())))
    return failure();
  return checkOffset(*this, getOffset());
}

LogicalResult GroupedProductGradOp::verify() {
  if (failed(checkRank(*this, "lhs", getLhs(), 3)) ||
      failed(checkRank(*this, "rhs", getRhs(), 3)) ||
      failed(checkRank(*this, "a result", getResult(), 3)))
    return failure();
  ArrayRef<int64_t> lhs = shapeOf(getLhs()), rhs = shapeOf(getRhs());
  int64_t experts = shapeOf(getResult())[0];
  if (failed(checkShape(*this, "rhs", getRhs(), {lhs[0], lhs[1], rhs[2]})) ||
      failed(checkShape(*this, "a result", getResult(),
                        {experts, lhs[2], rhs[2]})) ||
      failed(checkGroups(*this, getLhs(), getCounts(), experts, getBlocks())))
    return failure();
  // C3: one element type.
  if (failed(checkElement(*this, "rhs", getRhs(), elementOf(getLhs()))))
    return failure();
  return verifyFill(*this, getFill());
}

LogicalResult GroupedBiasOp::verify() {
  if (failed(checkRank(*this, "rows", getRows(), 3)) ||
      failed(checkRank(*this, "a bias", getBias(), 2)))
    return failure();
  int64_t experts = shapeOf(getBias())[0];
  if (failed(checkShape(*this, "a bias", getBias(),
                        {experts, shapeOf(getRows())[2]})))
    return failure();
  return checkGroups(*this, getRows(), getCounts(), experts, getBlocks());
}

LogicalResult GroupedBiasGradOp::verify() {
  if (failed(checkRank(*this, "a cotangent", getCotangent(), 3)) ||
      failed(checkRank(*this, "a result", getResult(), 2)))
    return failure();
  int64_t experts = shapeOf(getResult())[0];
  if (failed(checkShape(*this, "a result", getResult(),
                        {experts, shapeOf(getCotangent())[2]})))
    return failure();
  return checkGroups(*this, getCotangent(), getCounts(), experts, getBlocks());
}

/// y = x w gives dx = dy w^T and dw = x^T dy in each group of rows; weights of
/// the rows of dy go over to those of dx. As of an einsum, a parameter's
/// gradient is not rounded.
FailureOr<Cotangents> GroupedProductOp::vjp(OpBuilder &builder,
                                            ValueRange cotangents,
                                            ArrayRef<bool> needed) {
  Value dy =
      castElements(builder, getLoc(), cotangents[0], elementOf(getRows()));
  Cotangents result(getNumOperands());
  auto weighed = WeighedRows::match(dy);
  if (needed[0] && weighed)
    result[0] = WeighedRows{backThrough(*this, builder, weighed->rows),
                            weighed->weights}
                    .build(builder, getLoc(), cotangentElement(getRows()));
  else if (needed[0])
    result[0] = backThrough(*this, builder, dy);
  if (needed[1])
    result[1] = GroupedProductGradOp::create(
        builder, getLoc(),
        tensorOf(getWeights()).clone(cotangentElement(getWeights())),
        getTransposed() ? dy : getRows(), getTransposed() ? getRows() : dy,
        getCounts(), getBlocks(), getFillAttr());
  return result;
}

FailureOr<Cotangents> GroupedBiasOp::vjp(OpBuilder &builder,
                                         ValueRange cotangents,
                                         ArrayRef<bool> needed) {
  Cotangents result(getNumOperands());
  if (needed[0])
    result[0] = cotangents[0];
  if (!needed[1])
    return result;
  Type wide = elementOf(getBias());
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  Value grad = GroupedBiasGradOp::create(
      builder, getLoc(), tensorOf(getBias()).clone(wide), cotangents[0],
      getCounts(), getBlocks());
  result[1] =
      castElements(builder, getLoc(), grad, cotangentElement(getBias()));
  return result;
}

namespace {
/// Factors of an op on blocks of rows. The blocks are the first factor.
struct BlockFactors {
  SmallVector<int64_t, 1> batch, row, expert;

  BlockFactors(RuleBuilder &builder, Value rows, int64_t experts,
               int64_t blocks) {
    int64_t block = builder.factor(blocks);
    batch = {builder.factor(shapeOf(rows)[0])};
    row = {block, builder.factor(shapeOf(rows)[1] / blocks, false)};
    expert = {block, builder.factor(experts / blocks, false)};
  }
  Dimensions counts() const { return {batch, expert}; }
};
} // namespace

FactorRule RowDotOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  builder.linear({1});
  Dimensions rows = builder.factors(shapeOf(getLhs()));
  return withPadding(builder.finish({rows, rows}, {{rows[0], rows[1], {}}}));
}

FailureOr<SmallVector<Value>> RowDotOp::decompose(OpBuilder &builder) {
  Arithmetic b(builder, getLoc(), tensorOf(getLhs()));
  Value sum = b.rowSum(b.mul(b.widen(getLhs()), b.widen(getRhs())));
  Value column = ReshapeOp::create(
      builder, getLoc(), tensorOf(getResult()).clone(elementOf(sum)), sum);
  return SmallVector<Value>{b.convert(column, getResult().getType())};
}

FactorRule GroupedProductOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  builder.linear({1});
  BlockFactors of(builder, getRows(), shapeOf(getWeights())[0], getBlocks());
  SmallVector<int64_t, 1> in{builder.factor(shapeOf(getRows())[2])},
      out{builder.factor(shapeOf(getResult())[2])};
  Dimensions weights{of.expert, in, out};
  if (getTransposed())
    std::swap(weights[1], weights[2]);
  return builder.finish(
      withOffset({{of.batch, of.row, in}, weights, of.counts()}, getOffset()),
      {{of.batch, of.row, out}});
}

FactorRule GroupedProductGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  builder.linear({1});
  BlockFactors of(builder, getLhs(), shapeOf(getResult())[0], getBlocks());
  SmallVector<int64_t, 1> in{builder.factor(shapeOf(getLhs())[2])},
      out{builder.factor(shapeOf(getRhs())[2])};
  return builder.finish(
      {{of.batch, of.row, in}, {of.batch, of.row, out}, of.counts()},
      {{of.expert, in, out}});
}

FactorRule GroupedBiasOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0, 1});
  BlockFactors of(builder, getRows(), shapeOf(getBias())[0], getBlocks());
  SmallVector<int64_t, 1> column{builder.factor(shapeOf(getRows())[2])};
  Dimensions rows{of.batch, of.row, column};
  return builder.finish({rows, {of.expert, column}, of.counts()}, {rows});
}

FactorRule GroupedBiasGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  BlockFactors of(builder, getCotangent(), shapeOf(getResult())[0],
                  getBlocks());
  SmallVector<int64_t, 1> column{builder.factor(shapeOf(getResult())[1])};
  return builder.finish({{of.batch, of.row, column}, of.counts()},
                        {{of.expert, column}});
}

/// Gives `op` the blocks of one rank: on parts of its operands it is right
/// then.
template <typename Op>
static SmallVector<Value> divideBlocks(Op op, ArrayRef<Axes> factors) {
  op.setBlocks(op.getBlocks() / meshOf(op).getSize(factors.front()));
  return {};
}

Parts GroupedProductOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                  ArrayRef<int64_t>, TypeRange) {
  if (Value first = firstEntry(getLoc(), builder, factors.front(),
                               shapeOf(getWeights())[0]))
    getOffsetMutable().assign(first);
  return divideBlocks(*this, factors);
}

Parts GroupedProductGradOp::buildPart(OpBuilder &, ArrayRef<Axes> factors,
                                      ArrayRef<int64_t>, TypeRange) {
  return divideBlocks(*this, factors);
}

Parts GroupedBiasOp::buildPart(OpBuilder &, ArrayRef<Axes> factors,
                               ArrayRef<int64_t>, TypeRange) {
  return divideBlocks(*this, factors);
}

Parts GroupedBiasGradOp::buildPart(OpBuilder &, ArrayRef<Axes> factors,
                                   ArrayRef<int64_t>, TypeRange) {
  return divideBlocks(*this, factors);
}

/// A multiply-add an element.
Cost RowDotOp::getCost() {
  return streamingCost(*this, 2 * elementsOf(getLhs()));
}

/// A multiply-add per row that is expected to have an expert, and element of a
/// matrix.
Cost GroupedProductOp::getCost() {
  auto experts = double(shapeOf(getWeights())[0]);
  auto columns = double(lastDimension(getRows()));
  double rows = fillOf(getFill()) * elementsOf(getRows()) / columns;
  return productCost(*this, {experts, rows / experts,
                             double(lastDimension(getResult())), columns});
}

Cost GroupedProductGradOp::getCost() {
  auto experts = double(shapeOf(getResult())[0]);
  auto columns = double(lastDimension(getLhs()));
  double rows = fillOf(getFill()) * elementsOf(getLhs()) / columns;
  return productCost(*this, {experts, columns, double(lastDimension(getRhs())),
                             rows / experts});
}

Cost GroupedBiasOp::getCost() {
  return streamingCost(*this, elementsOf(getRows()));
}

Cost GroupedBiasGradOp::getCost() {
  return streamingCost(*this, elementsOf(getCotangent()));
}

TaskForm GroupedProductOp::getTaskForm() { return TaskForm::Product; }
bool GroupedProductOp::canAccumulate(unsigned) { return true; }
TaskForm GroupedProductGradOp::getTaskForm() { return TaskForm::Product; }
bool GroupedProductGradOp::canAccumulate(unsigned) { return true; }
bool GroupedBiasGradOp::canAccumulate(unsigned) { return true; }

/// A row is read before it is written.
InPlacePairs GroupedBiasOp::getInPlacePairs() { return {{0, 0}}; }
