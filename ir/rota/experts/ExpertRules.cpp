// SPDX-License-Identifier: Apache-2.0
//
// Divisions of the ops of a mixture of experts: their sharding rules as
// factors, and their parts on one rank. The batch divides freely. Experts and
// the rows of a sequence divide together, by blocks: the number of blocks is a
// factor of both. What moves tokens to and from rows numbers the rows instead,
// and knows the first of its part by an offset.
#include "ir/rota/experts/Experts.h"
#include "ir/rota/sharding/RuleBuilder.h"
#include "ir/rota/sharding/Sharding.h"

using namespace mlir;
using namespace mlir::rota;

using Dimensions = FactorRule::Dimensions;
using Axes = SmallVector<AxisRefAttr, 2>;
using Parts = FailureOr<SmallVector<Value>>;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Tokens are chosen for one by one.
FactorRule RouteOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions logits = builder.rowFactors(shapeOf(getLogits()));
  int64_t k = builder.factor(shapeOf(getExperts())[2], /*divisible=*/false);
  Dimensions choices{logits[0], logits[1], {k}};
  SmallVector<Dimensions> operands{logits};
  if (getBias())
    operands.push_back({logits[2]});
  return builder.finish(operands, {choices, choices});
}

FactorRule RouteGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  Dimensions logits = builder.rowFactors(shapeOf(getLogits()));
  int64_t k = builder.factor(shapeOf(getExperts())[2], /*divisible=*/false);
  Dimensions choices{logits[0], logits[1], {k}};
  return builder.finish({choices, logits, choices}, {logits});
}

/// A place depends on all choices of its sequence.
FactorRule ExpertPlacesOp::getFactorRule() {
  RuleBuilder builder;
  ArrayRef<int64_t> shape = shapeOf(getExperts());
  int64_t batch = builder.factor(shape[0]);
  int64_t tokens = builder.factor(shape[1], /*divisible=*/false);
  int64_t k = builder.factor(shape[2], /*divisible=*/false);
  int64_t experts =
      builder.factor(shapeOf(getCounts())[1], /*divisible=*/false);
  Dimensions choices{{batch}, {tokens}, {k}};
  return builder.finish({choices}, {choices, {{batch}, {experts}}});
}

/// Ranks with parts of the batch have parts of the rows.
FactorRule ObserveOp::getFactorRule() {
  RuleBuilder builder;
  ArrayRef<int64_t> shape = shapeOf(getCounts());
  int64_t batch = builder.factor(shape[0]);
  int64_t columns = builder.factor(shape[1], /*divisible=*/false);
  return builder.finish({{{batch}, {columns}}}, {});
}

FactorRule ObservedMeanOp::getFactorRule() {
  RuleBuilder builder;
  int64_t columns =
      builder.factor(shapeOf(getResult())[0], /*divisible=*/false);
  return builder.finish({}, {{{columns}}});
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

/// The number of the first of the `entries` that this rank has of a dimension
/// divided over `axes`; null where it has all.
static Value firstOf(Location loc, OpBuilder &builder, const Axes &axes,
                     int64_t entries) {
  if (axes.empty())
    return {};
  SmallVector<Attribute> refs(axes.begin(), axes.end());
  return ShardOffsetOp::create(builder, loc,
                               RankedTensorType::get({}, builder.getI32Type()),
                               builder.getArrayAttr(refs), entries);
}

/// The place of the first of this rank's `rows`; null where it has all.
static Value firstRow(FactorRuleOpInterface op, OpBuilder &builder,
                      ArrayRef<Axes> factors, int64_t rows) {
  return firstOf(op.getLoc(), builder,
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

/// Gives `op` the blocks of one rank: on parts of its operands it is right
/// then.
template <typename Op>
static SmallVector<Value> divideBlocks(Op op, ArrayRef<Axes> factors) {
  op.setBlocks(op.getBlocks() / meshOf(op).getSize(factors.front()));
  return {};
}

Parts GroupedProductOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                  ArrayRef<int64_t>, TypeRange) {
  if (Value first =
          firstOf(getLoc(), builder, factors.front(), shapeOf(getWeights())[0]))
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
