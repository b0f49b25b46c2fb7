// SPDX-License-Identifier: Apache-2.0
//
// Attention and its derivative. Their parts in a ring are in RingAttention.cpp
// and BalancedRing.cpp.
#include "ir/rota/OpFamily.h"
#include "ir/rota/attention/SeenPairs.h"
#include "runtime/text/Text.h"

using namespace mlir;
using namespace mlir::rota;

/// C1 to C3 of attention for its operands and what has their shapes.
template <typename Op> static LogicalResult verifyAttentionShapes(Op op) {
  Value query = op.getQuery(), key = op.getKey(), value = op.getValue();
  if (failed(checkRank(op, "a query", query, 4)) ||
      failed(checkRank(op, "a key", key, 4)) ||
      failed(checkRank(op, "a value", value, 4)))
    return failure();
  ArrayRef<int64_t> q = shapeOf(query);
  int64_t keyHeads = shapeOf(key)[2], valueSize = shapeOf(value)[3];
  if (failed(checkShape(op, "a key", key, {q[0], q[1], keyHeads, q[3]})) ||
      failed(checkElement(op, "a key", key, elementOf(query))) ||
      failed(checkShape(op, "a value", value,
                        {q[0], q[1], keyHeads, valueSize})) ||
      failed(checkElement(op, "a value", value, elementOf(query))))
    return failure();
  if (keyHeads == 0 || q[2] % keyHeads != 0)
    return op->emitOpError("expected the key heads to divide the query heads, "
                           "got ")
           << keyHeads << " and " << q[2];
  if (failed(checkShape(op, "an output", op.getOutput(),
                        {q[0], q[1], q[2], valueSize})))
    return failure();
  return checkShape(op, "a logsumexp", op.getLogsumexp(), {q[0], q[2], q[1]});
}

/// C7 and C9 of attention.
template <typename Op> static LogicalResult verifyBlocks(Op op) {
  std::optional<uint64_t> distance = op.getBehind();
  Value key = op.getKeyPosition();
  if (bool(op.getPosition()) != (distance || key) || (distance && key))
    return op->emitOpError(
        "expected 'behind' or a key position with a position");
  if (distance && int64_t(*distance) < 1)
    return op->emitOpError("expected a distance of 1 block or more, got ")
           << int64_t(*distance);
  for (Value position : {Value(op.getPosition()), key})
    if (position && !shapeOf(position).empty())
      return op->emitOpError("expected a position of rank 0, got ")
             << position.getType();
  if ((op.getRing() || distance) && op.getBidirectional() && op.getWindow())
    return op->emitOpError("expected no window of bidirectional attention in "
                           "a ring");
  if (op.getBalanced() && !op.getRing())
    return op->emitOpError("expected 'ring' with 'balanced'");
  if ((op.getBalanced() || key) && (op.getBidirectional() || op.getWindow()))
    return op->emitOpError("expected causal attention without a window in "
                           "balanced order");
  return success();
}

/// C10 of attention.
template <typename Op> static LogicalResult verifyDocuments(Op op) {
  Value documents = op.getDocuments();
  if (!documents)
    return success();
  if (op.getBidirectional() || op.getBalanced() || op.getKeyPosition())
    return op->emitOpError("expected causal attention, in no balanced order, "
                           "with documents");
  return checkShape(op, "documents", documents,
                    shapeOf(op.getQuery()).take_front(2));
}

/// C1 to C7, C9 and C10 of attention.
template <typename Op> static LogicalResult verifyAttention(Op op) {
  if (failed(verifyAttentionShapes(op)))
    return failure();
  // C4: a window is positive.
  if (op.getWindow() && int64_t(*op.getWindow()) < 1)
    return op->emitOpError("expected a window of 1 position or more, got ")
           << int64_t(*op.getWindow());
  // C5: a soft cap is finite and positive.
  if (std::optional<APFloat> cap = op.getSoftCap();
      cap && (!cap->isFinite() || cap->isNegative() || cap->isZero()))
    return op->emitOpError("expected a finite soft cap above 0, got ")
           << ::rota::numberText(cap->convertToDouble());
  // C6: sinks are [H].
  if (Value sinks = op.getSinks();
      sinks &&
      (failed(checkShape(op, "sinks", sinks, shapeOf(op.getQuery())[2])) ||
       failed(checkElement(op, "sinks", sinks, elementOf(op.getLogsumexp())))))
    return failure();
  return failed(verifyBlocks(op)) ? failure() : verifyDocuments(op);
}

/// The element type is that of `like`, or not bf16.
static LogicalResult checkWideElement(Operation *op, StringRef what,
                                      Value value, Value like) {
  if (elementOf(value).isBF16())
    return checkElement(op, what, value, elementOf(like));
  return success();
}

LogicalResult AttentionOp::verify() {
  // C3: an output of q's element type, or not bf16.
  if (failed(verifyAttention(*this)) ||
      failed(checkWideElement(*this, "an output", getOutput(), getQuery())))
    return failure();
  // C8: what comes before has the shapes of the results.
  if (bool(getPrevious()) != bool(getPreviousLogsumexp()))
    return emitOpError("expected a previous logsumexp with a previous output");
  if (!getPrevious())
    return success();
  if (failed(checkShape(*this, "a previous output", getPrevious(),
                        shapeOf(getOutput()))))
    return failure();
  return checkType(*this, "a previous logsumexp", getPreviousLogsumexp(),
                   getLogsumexp().getType());
}

LogicalResult AttentionGradOp::verify() {
  // C1: operands as in attention, results as operands.
  if (failed(verifyAttention(*this)) ||
      failed(checkElement(*this, "an output", getOutput(),
                          elementOf(getQuery()))) ||
      failed(checkType(*this, "a cotangent", getCotangent(),
                       getOutput().getType())) ||
      failed(checkShape(*this, "a query cotangent", getQueryCotangent(),
                        shapeOf(getQuery()))) ||
      failed(checkWideElement(*this, "a query cotangent", getQueryCotangent(),
                              getQuery())) ||
      failed(checkType(*this, "a key cotangent", getKeyCotangent(),
                       getKey().getType())) ||
      failed(checkType(*this, "a value cotangent", getValueCotangent(),
                       getValue().getType())))
    return failure();
  // C2: a cotangent for sinks.
  if (bool(getSinks()) != bool(getSinksCotangent()))
    return emitOpError("expected a cotangent of sinks where there are sinks, "
                       "got ")
           << (getSinks() ? "sinks alone" : "the cotangent alone");
  return getSinks() ? checkType(*this, "a sinks cotangent", getSinksCotangent(),
                                getSinks().getType())
                    : success();
}

FailureOr<Cotangents> AttentionOp::vjp(OpBuilder &builder,
                                       ValueRange cotangents,
                                       ArrayRef<bool> needed) {
  if (cotangents[1])
    return emitOpError("has no derivative of its logsumexp");
  if (getPrevious() || getPosition())
    return emitOpError("has no derivative where keys are of another block");
  // One result for each of the first operands.
  SmallVector<Type> types{getQuery().getType(), getKey().getType(),
                          getValue().getType()};
  if (getSinks())
    types.push_back(getSinks().getType());
  auto grad = AttentionGradOp::create(
      builder, getLoc(), types, cotangents[0], getQuery(), getKey(), getValue(),
      getOutput(), getLogsumexp(), getSinks(), getDocuments(),
      /*position=*/Value(), /*key_position=*/Value(), getScaleAttr(),
      getWindowAttr(), getSoftCapAttr(), getBidirectionalAttr(), getRingAttr(),
      getBalancedAttr(), /*behind=*/IntegerAttr());
  Cotangents result(getNumOperands());
  for (auto [index, cotangent] : llvm::enumerate(grad.getResults()))
    if (needed[index])
      result[index] = cotangent;
  return result;
}

namespace {
/// The dimensions of attention's operands. Query heads are key heads times the
/// size of a group; the mask refers to positions and the softmax to a whole
/// row, so the sequence is split in a ring alone.
struct AttentionFactors {
  Dimensions query, key, value, output, logsumexp, sinks, documents;

  AttentionFactors(RuleBuilder &builder, Value q, Value v, bool ring) {
    ArrayRef<int64_t> shape = shapeOf(q), values = shapeOf(v);
    int64_t batch = builder.factor(shape[0]);
    int64_t sequence = builder.factor(shape[1], /*divisible=*/ring);
    int64_t keyHeads = builder.factor(values[2]);
    int64_t group = builder.factor(shape[2] / values[2]);
    int64_t head = builder.factor(shape[3], /*divisible=*/false);
    int64_t valueHead = builder.factor(values[3], /*divisible=*/false);
    query = {{batch}, {sequence}, {keyHeads, group}, {head}};
    key = {{batch}, {sequence}, {keyHeads}, {head}};
    value = {{batch}, {sequence}, {keyHeads}, {valueHead}};
    output = {{batch}, {sequence}, {keyHeads, group}, {valueHead}};
    logsumexp = {{batch}, {keyHeads, group}, {sequence}};
    sinks = {{keyHeads, group}};
    documents = {{batch}, {sequence}};
  }

  /// `list`, and sinks where the op has them.
  SmallVector<Dimensions> withSinks(SmallVector<Dimensions> list,
                                    Value present) {
    if (present)
      list.push_back(sinks);
    return list;
  }

  /// `list`, and sinks, documents and positions where the op has them.
  template <typename Op>
  SmallVector<Dimensions> withForm(SmallVector<Dimensions> list, Op op) {
    list = withSinks(std::move(list), op.getSinks());
    if (op.getDocuments())
      list.push_back(documents);
    return withOffset(withOffset(std::move(list), op.getPosition()),
                      op.getKeyPosition());
  }
};
} // namespace

FactorRule AttentionOp::getFactorRule() {
  RuleBuilder builder;
  AttentionFactors of(builder, getQuery(), getValue(), getRing());
  SmallVector<Dimensions> operands{of.query, of.key, of.value};
  if (getPrevious())
    llvm::append_values(operands, of.output, of.logsumexp);
  return builder.finish(of.withForm(operands, *this),
                        {of.output, of.logsumexp});
}

/// The cotangent of sinks is a sum over batch and sequence.
FactorRule AttentionGradOp::getFactorRule() {
  RuleBuilder builder;
  builder.linear({0});
  AttentionFactors of(builder, getQuery(), getValue(), getRing());
  return builder.finish(
      of.withForm(
          {of.output, of.query, of.key, of.value, of.output, of.logsumexp},
          *this),
      of.withSinks({of.query, of.key, of.value}, getSinksCotangent()));
}

/// Operations of attention: products of `keyProducts` times the size of a key
/// and `valueProducts` times that of a value for each pair of a query and a key
/// that it sees, `scores` more, `capped` with a soft cap; and `sunk` a row with
/// sinks.
template <typename Op>
static double attentionFlops(Op op, double keyProducts, double valueProducts,
                             double scores, double capped, double sunk) {
  ArrayRef<int64_t> shape = shapeOf(op.getQuery());
  double heads = double(shape[0]) * double(shape[2]);
  double pair = 2 * keyProducts * double(shape[3]) +
                2 * valueProducts * double(lastDimension(op.getValue())) +
                scores + (op.getSoftCap() ? capped : 0);
  double rows = op.getSinks() ? heads * double(shape[1]) : 0;
  return heads * seenPairs(op) * pair + rows * sunk;
}

//===----------------------------------------------------------------------===//
// Positions in documents
//===----------------------------------------------------------------------===//

LogicalResult DocumentPositionsOp::verify() {
  // C1: [batch, sequence].
  if (failed(checkRank(*this, "a result", getResult(), 2)))
    return failure();
  // C2: a token.
  if (int64_t(getEnd()) < 0)
    return emitOpError("expected an end token of 0 or more, got ")
           << int64_t(getEnd());
  return success();
}

/// The runtime makes it of whole sequences.
FactorRule DocumentPositionsOp::getFactorRule() {
  RuleBuilder builder;
  ArrayRef<int64_t> shape = shapeOf(getResult());
  Dimensions positions{{builder.factor(shape[0])},
                       {builder.factor(shape[1], /*divisible=*/false)}};
  return builder.finish({}, {positions});
}

Cost DocumentPositionsOp::getCost() { return {}; }

TaskForm DocumentPositionsOp::getTaskForm() { return TaskForm::Address; }

//===----------------------------------------------------------------------===//
// Costs
//===----------------------------------------------------------------------===//

/// q k^T and p v; a pair's scale, maximum, subtraction, exp and sum; the cap's
/// tanh and factor; a sink's subtraction, exp and sum.
Cost AttentionOp::getCost() {
  Cost cost = streamingCost(*this, attentionFlops(*this, 1, 1, 5, 2, 3));
  cost.form = WorkForm::Attention;
  return cost;
}

/// q k^T again, do v^T, p^T do, ds k, ds^T q; a pair's scale, subtraction, exp,
/// and p * (dp - delta) * scale; the cap's tanh, factor, square, subtraction
/// and product; a sink's subtraction, exp, product and sum.
Cost AttentionGradOp::getCost() {
  Cost cost = streamingCost(*this, attentionFlops(*this, 3, 2, 6, 5, 4));
  cost.form = WorkForm::AttentionGradient;
  return cost;
}
