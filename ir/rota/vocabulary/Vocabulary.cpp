// SPDX-License-Identifier: Apache-2.0
//
// Embedding and cross-entropy: the ops that number the entries of a vocabulary.
// Divided over it, they know the first entry of their part by an offset.
#include "ir/rota/OpFamily.h"

using namespace mlir;
using namespace mlir::rota;

/// C3 of the ops on parts of a vocabulary: `vocabulary` is a size.
static LogicalResult checkVocabulary(Operation *op,
                                     std::optional<uint64_t> vocabulary,
                                     Value offset) {
  if (!vocabulary)
    return success();
  if (int64_t(*vocabulary) < 1)
    return op->emitOpError("expected a vocabulary of 1 entry or more, got ")
           << int64_t(*vocabulary);
  if (!offset)
    return op->emitOpError("expected an offset with a size of the vocabulary, "
                           "got none");
  return success();
}

LogicalResult EmbeddingOp::verify() {
  // C1: tokens [batch, sequence], table [vocabulary, embed].
  if (failed(checkRank(*this, "tokens", getTokens(), 2)) ||
      failed(checkRank(*this, "a table", getTable(), 2)))
    return failure();
  ArrayRef<int64_t> tokens = shapeOf(getTokens());
  if (failed(checkShape(*this, "a result", getResult(),
                        {tokens[0], tokens[1], shapeOf(getTable())[1]})) ||
      failed(
          checkElement(*this, "a result", getResult(), elementOf(getTable()))))
    return failure();
  if (failed(checkOffset(*this, getOffset())))
    return failure();
  return checkVocabulary(*this, getVocabulary(), getOffset());
}

LogicalResult EmbeddingGradOp::verify() {
  // C1: tokens [batch, sequence], cotangent [batch, sequence, embed].
  if (failed(checkRank(*this, "tokens", getTokens(), 2)) ||
      failed(checkRank(*this, "a result", getResult(), 2)))
    return failure();
  ArrayRef<int64_t> tokens = shapeOf(getTokens());
  if (failed(checkShape(*this, "a cotangent", getCotangent(),
                        {tokens[0], tokens[1], shapeOf(getResult())[1]})))
    return failure();
  return checkOffset(*this, getOffset());
}

/// C1 of cross_entropy for its operands and what has their shapes.
static LogicalResult verifyCrossEntropy(Operation *op, Value logits,
                                        Value targets, Value logsumexp,
                                        ValueRange scalars) {
  if (failed(checkRank(op, "logits", logits, 3)))
    return failure();
  ArrayRef<int64_t> rows = shapeOf(logits).take_front(2);
  if (failed(checkShape(op, "targets", targets, rows)) ||
      failed(checkShape(op, "a logsumexp", logsumexp, rows)))
    return failure();
  for (Value scalar : scalars)
    if (failed(checkShape(op, "a scalar", scalar, {})))
      return failure();
  return success();
}

LogicalResult CrossEntropyOp::verify() {
  return verifyCrossEntropy(*this, getLogits(), getTargets(), getLogsumexp(),
                            {getSum(), getWeight()});
}

LogicalResult CrossEntropyGradOp::verify() {
  if (failed(verifyCrossEntropy(*this, getLogits(), getTargets(),
                                getLogsumexp(), {getCotangent()})) ||
      (getRowCotangent() &&
       failed(checkShape(*this, "a logsumexp's cotangent", getRowCotangent(),
                         shapeOf(getLogsumexp())))) ||
      failed(checkType(*this, "a result", getResult(), getLogits().getType())))
    return failure();
  if (failed(checkOffset(*this, getOffset())))
    return failure();
  return checkVocabulary(*this, getVocabulary(), getOffset());
}

LogicalResult CrossEntropyShardOp::verify() {
  // C1: logits [batch, sequence, columns], parts [batch, sequence, 2].
  if (failed(checkRank(*this, "logits", getLogits(), 3)))
    return failure();
  ArrayRef<int64_t> rows = shapeOf(getLogits()).take_front(2);
  if (failed(checkShape(*this, "targets", getTargets(), rows)) ||
      failed(checkShape(*this, "parts", getParts(), {rows[0], rows[1], 2})))
    return failure();
  if (failed(checkOffset(*this, getOffset())))
    return failure();
  return checkVocabulary(*this, getVocabulary(), getOffset());
}

LogicalResult CrossEntropyMergeOp::verify() {
  // C1: two columns a part.
  if (failed(verifyCrossEntropy(*this, getParts(), getTargets(), getLogsumexp(),
                                {getSum(), getWeight()})))
    return failure();
  int64_t columns = shapeOf(getParts())[2];
  if (columns == 0 || columns % 2 != 0)
    return emitOpError("expected two columns a part, got ") << columns;
  // C2: one element type.
  for (Value result : getResults())
    if (failed(checkElement(*this, "a result", result, elementOf(getParts()))))
      return failure();
  return success();
}

FailureOr<Cotangents> EmbeddingOp::vjp(OpBuilder &builder,
                                       ValueRange cotangents,
                                       ArrayRef<bool> needed) {
  Cotangents result(getNumOperands());
  if (!needed[1])
    return result;
  Type wide = elementOf(getTable());
  if (wide.getIntOrFloatBitWidth() < 32)
    wide = builder.getF32Type();
  Value grad = EmbeddingGradOp::create(builder, getLoc(),
                                       tensorOf(getTable()).clone(wide),
                                       getTokens(), cotangents[0], getOffset());
  result[1] =
      castElements(builder, getLoc(), grad, cotangentElement(getTable()));
  return result;
}

/// The weight is a count, so its derivative is zero.
FailureOr<Cotangents> CrossEntropyOp::vjp(OpBuilder &builder,
                                          ValueRange cotangents,
                                          ArrayRef<bool> needed) {
  Cotangents result(getNumOperands());
  Value cotangent = cotangents[0], ofRows = cotangents[2];
  if (!needed[0] || (!cotangent && !ofRows))
    return result;
  if (!cotangent)
    cotangent = splatConstant(builder, getLoc(), getSum().getType(), 0.0);
  result[0] = CrossEntropyGradOp::create(
      builder, getLoc(), getLogits().getType(), cotangent, getLogits(),
      getTargets(), getLogsumexp(), ofRows);
  return result;
}

/// A token is a row number of the whole table. Parts of the table give parts of
/// a sum, in which each token's row is in one.
FactorRule EmbeddingOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({1});
  Dimensions result = builder.factors(shapeOf(getResult()));
  int64_t vocabulary = builder.vocabulary(shapeOf(getTable())[0]);
  return builder.finish(
      withOffset({{result[0], result[1]}, {{vocabulary}, result[2]}},
                 getOffset()),
      {result});
}

FactorRule EmbeddingGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({1});
  Dimensions rows = builder.factors(shapeOf(getCotangent()));
  int64_t vocabulary = builder.vocabulary(shapeOf(getResult())[0]);
  return builder.finish(withOffset({{rows[0], rows[1]}, rows}, getOffset()),
                        {{{vocabulary}, rows[2]}});
}

/// [batch, sequence, vocabulary], where a target is a number of the last.
static Dimensions logitFactors(RuleBuilder &builder, Value logits) {
  ArrayRef<int64_t> shape = shapeOf(logits);
  Dimensions dimensions = builder.factors(shape.drop_back());
  dimensions.push_back({builder.vocabulary(shape.back())});
  return dimensions;
}

/// Sum and weight are sums over batch and sequence. The vocabulary is not
/// summed over: parts of it are merged by `rota.cross_entropy_merge`.
FactorRule CrossEntropyOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions logits = logitFactors(builder, getLogits());
  builder.combine(logits.back().front());
  Dimensions rows{logits[0], logits[1]};
  return builder.finish({logits, rows}, {{}, {}, rows});
}

FactorRule CrossEntropyGradOp::getFactorRule() {
  RuleBuilder builder;
  // In both cotangents together; that of rows comes last.
  if (getRowCotangent())
    builder.linear({0, int64_t(getNumOperands()) - 1});
  else
    builder.linear({0});
  Dimensions logits = logitFactors(builder, getLogits());
  Dimensions rows{logits[0], logits[1]};
  auto operands = withOffset({{}, logits, rows, rows}, getOffset());
  if (getRowCotangent())
    operands.push_back(rows);
  return builder.finish(operands, {logits});
}

FactorRule CrossEntropyShardOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions logits = builder.rowFactors(shapeOf(getLogits()));
  Dimensions rows{logits[0], logits[1]};
  int64_t pair = builder.factor(2, /*divisible=*/false);
  return builder.finish({logits, rows, {}}, {{rows[0], rows[1], {pair}}});
}

FactorRule CrossEntropyMergeOp::getFactorRule() {
  RuleBuilder builder;
  Dimensions parts = builder.rowFactors(shapeOf(getParts()));
  Dimensions rows{parts[0], parts[1]};
  return builder.finish({parts, rows}, {{}, {}, rows});
}

/// The axes of the vocabulary's factor.
static ArrayRef<AxisRefAttr> vocabularyAxes(FactorRuleOpInterface op,
                                            ArrayRef<Axes> factors) {
  return factors[op.getFactorRule().numbered.front()];
}

/// The size of the whole vocabulary where parts of `entries` are more; null
/// where they are all of it.
static IntegerAttr paddedVocabulary(FactorRuleOpInterface op,
                                    ArrayRef<int64_t> sizes,
                                    ArrayRef<AxisRefAttr> axes,
                                    int64_t entries) {
  int64_t whole = sizes[op.getFactorRule().numbered.front()];
  if (meshOf(op).getSize(axes) * entries == whole)
    return {};
  return Builder(op.getContext()).getI64IntegerAttr(whole);
}

Parts EmbeddingOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                             ArrayRef<int64_t> sizes, TypeRange types) {
  ArrayRef<AxisRefAttr> axes = vocabularyAxes(*this, factors);
  if (axes.empty())
    return SmallVector<Value>();
  Value first = firstEntry(getLoc(), builder, axes, shapeOf(getTable())[0]);
  return SmallVector<Value>{
      create(builder, getLoc(), types[0], getTokens(), getTable(), first,
             paddedVocabulary(*this, sizes, axes, shapeOf(getTable())[0]))};
}

Parts EmbeddingGradOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                 ArrayRef<int64_t>, TypeRange types) {
  ArrayRef<AxisRefAttr> axes = vocabularyAxes(*this, factors);
  if (axes.empty())
    return SmallVector<Value>();
  Value first = firstEntry(getLoc(), builder, axes,
                           cast<RankedTensorType>(types[0]).getDimSize(0));
  return SmallVector<Value>{
      create(builder, getLoc(), types[0], getTokens(), getCotangent(), first)};
}

/// Each rank's logsumexp and target logit, gathered and merged.
Parts CrossEntropyOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                ArrayRef<int64_t> sizes, TypeRange types) {
  ArrayRef<AxisRefAttr> axes = vocabularyAxes(*this, factors);
  if (axes.empty())
    return SmallVector<Value>();
  Value first = firstEntry(getLoc(), builder, axes, shapeOf(getLogits())[2]);
  Type element = getElementTypeOrSelf(types[0]);
  SmallVector<int64_t> shape{shapeOf(getLogits())[0], shapeOf(getLogits())[1],
                             2};
  Value part = CrossEntropyShardOp::create(
      builder, getLoc(), RankedTensorType::get(shape, element), getLogits(),
      getTargets(), first,
      paddedVocabulary(*this, sizes, axes, shapeOf(getLogits())[2]));
  shape.back() *= meshOf(*this).getSize(axes);
  Value parts = AllGatherOp::create(
      builder, getLoc(), RankedTensorType::get(shape, element), part,
      builder.getI64IntegerAttr(2), axesAttr(builder, axes),
      builder.getStringAttr("cross-entropy over parts of the vocabulary"));
  auto merged = CrossEntropyMergeOp::create(builder, getLoc(), types, parts,
                                            getTargets());
  return SmallVector<Value>(merged.getResults());
}

Parts CrossEntropyGradOp::buildPart(OpBuilder &builder, ArrayRef<Axes> factors,
                                    ArrayRef<int64_t> sizes, TypeRange types) {
  ArrayRef<AxisRefAttr> axes = vocabularyAxes(*this, factors);
  if (axes.empty())
    return SmallVector<Value>();
  Value first = firstEntry(getLoc(), builder, axes, shapeOf(getLogits())[2]);
  return SmallVector<Value>{
      create(builder, getLoc(), types[0], getCotangent(), getLogits(),
             getTargets(), getLogsumexp(), first,
             paddedVocabulary(*this, sizes, axes, shapeOf(getLogits())[2]),
             getRowCotangent())};
}

/// Entries of a vocabulary of which `entries` are in the part from `offset` on;
/// none where nothing says how many parts there are.
static std::optional<int64_t> boundOf(Operation *op, int64_t entries,
                                      Value offset,
                                      std::optional<uint64_t> vocabulary) {
  if (!offset)
    return entries;
  if (vocabulary)
    return int64_t(*vocabulary);
  auto first = offset.getDefiningOp<ShardOffsetOp>();
  if (!first)
    return std::nullopt;
  auto axes = llvm::to_vector(first.getAxes().getAsRange<AxisRefAttr>());
  return entries * meshOf(op).getSize(axes);
}

Value EmbeddingOp::getIndices() { return getTokens(); }

std::optional<int64_t> EmbeddingOp::getIndexBound() {
  return boundOf(*this, shapeOf(getTable())[0], getOffset(), getVocabulary());
}

Value CrossEntropyOp::getIndices() { return getTargets(); }

std::optional<int64_t> CrossEntropyOp::getIndexBound() {
  return shapeOf(getLogits())[2];
}

bool CrossEntropyOp::allowsNegativeIndices() { return true; }

Value CrossEntropyShardOp::getIndices() { return getTargets(); }

std::optional<int64_t> CrossEntropyShardOp::getIndexBound() {
  return boundOf(*this, shapeOf(getLogits())[2], getOffset(), getVocabulary());
}

bool CrossEntropyShardOp::allowsNegativeIndices() { return true; }

/// Reads the rows it copies, not the table.
Cost EmbeddingOp::getCost() {
  double rows = bytesOf(getResult());
  return {0, rows + bytesOf(getTokens()), rows};
}

Cost EmbeddingGradOp::getCost() {
  return streamingCost(*this, elementsOf(getCotangent()));
}

/// maximum, -, exp, +.
Cost CrossEntropyOp::getCost() {
  return streamingCost(*this, 4 * elementsOf(getLogits()),
                       elementsOf(getLogits()));
}

/// maximum, -, exp, +.
Cost CrossEntropyShardOp::getCost() {
  return streamingCost(*this, 4 * elementsOf(getLogits()),
                       elementsOf(getLogits()));
}

/// maximum, -, exp, +; the sum of logits: 5 a pair.
Cost CrossEntropyMergeOp::getCost() {
  return streamingCost(*this, 2.5 * elementsOf(getParts()));
}

/// - logsumexp, exp, *.
Cost CrossEntropyGradOp::getCost() {
  return streamingCost(*this, 3 * elementsOf(getLogits()),
                       elementsOf(getLogits()));
}

bool EmbeddingGradOp::canAccumulate(unsigned) { return true; }

/// A row's target is read before the row is written.
InPlacePairs CrossEntropyGradOp::getInPlacePairs() { return {{1, 0}}; }
