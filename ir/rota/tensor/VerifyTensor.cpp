// SPDX-License-Identifier: Apache-2.0
//
// Verifiers of the tensor ops. Labels C1..Cn are those of the ops'
// descriptions.
#include "ir/rota/Checks.h"
#include "runtime/program/Text.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::rota;

static LogicalResult checkEpsilon(Operation *op, const APFloat &epsilon) {
  if (epsilon.isFinite() && !epsilon.isNegative())
    return success();
  return op->emitOpError("expected an epsilon of at least 0, got ")
         << ::rota::numberText(epsilon.convertToDouble());
}

static SmallVector<int64_t> without(ArrayRef<int64_t> shape,
                                    ArrayRef<int64_t> dims) {
  SmallVector<int64_t> kept;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (!llvm::is_contained(dims, int64_t(dim)))
      kept.push_back(size);
  return kept;
}

/// Checks that `dims` ascend within `rank`.
static LogicalResult checkDims(Operation *op, ArrayRef<int64_t> dims,
                               int64_t rank) {
  int64_t last = -1;
  for (int64_t dim : dims) {
    if (dim <= last || dim >= rank)
      return op->emitOpError("expected ascending dims below ")
             << rank << ", got [" << dims << "]";
    last = dim;
  }
  return success();
}

EinsumOp::Letters EinsumOp::getLetters() {
  auto [operands, result] = getEquation().split("->");
  auto [lhs, rhs] = operands.split(',');
  return {lhs, rhs, result};
}

LogicalResult EinsumOp::verify() {
  Letters letters = getLetters();
  // C1: `letters,letters->letters`, distinct in each.
  for (StringRef part : {letters.lhs, letters.rhs, letters.result}) {
    llvm::SmallDenseSet<char> seen;
    for (char letter : part)
      if (!llvm::isAlpha(letter) || !seen.insert(letter).second)
        return emitOpError("expected an equation 'letters,letters->letters' "
                           "with distinct letters in each, got '")
               << getEquation() << "'";
  }
  // C2: letters and ranks agree; a letter has one size.
  DenseMap<char, int64_t> sizes;
  auto bind = [&](StringRef part, Value value) -> LogicalResult {
    if (int64_t(part.size()) != tensorOf(value).getRank())
      return emitOpError("expected rank ")
             << part.size() << " for '" << part << "', got " << value.getType();
    for (auto [letter, size] : llvm::zip(part, shapeOf(value))) {
      auto [it, isNew] = sizes.try_emplace(letter, size);
      if (!isNew && it->second != size)
        return emitOpError("expected one size for '")
               << StringRef(&letter, 1) << "', got " << it->second << " and "
               << size;
    }
    return success();
  };
  if (failed(bind(letters.lhs, getLhs())) ||
      failed(bind(letters.rhs, getRhs())) ||
      failed(bind(letters.result, getResult())))
    return failure();
  // C3: every letter stands twice at least, in the right places.
  for (char letter : letters.result)
    if (!letters.lhs.contains(letter) && !letters.rhs.contains(letter))
      return emitOpError("expected '")
             << StringRef(&letter, 1) << "' in an operand of '" << getEquation()
             << "'";
  for (char letter : letters.lhs)
    if (!letters.rhs.contains(letter) && !letters.result.contains(letter))
      return emitOpError("expected '")
             << StringRef(&letter, 1)
             << "' in the other operand or the result of '" << getEquation()
             << "'";
  for (char letter : letters.rhs)
    if (!letters.lhs.contains(letter) && !letters.result.contains(letter))
      return emitOpError("expected '")
             << StringRef(&letter, 1)
             << "' in the other operand or the result of '" << getEquation()
             << "'";
  // C4: one element type.
  return checkElement(*this, "the right operand", getRhs(),
                      elementOf(getLhs()));
}

LogicalResult ReshapeOp::verify() {
  // C1: same number of elements.
  if (tensorOf(getInput()).getNumElements() !=
      tensorOf(getResult()).getNumElements())
    return emitOpError("expected ")
           << tensorOf(getInput()).getNumElements() << " elements, got "
           << tensorOf(getResult()).getNumElements();
  // C2: one element type.
  return checkElement(*this, "a result", getResult(), elementOf(getInput()));
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (getInput().getType() == getType())
    return getInput();
  if (auto producer = getInput().getDefiningOp<ReshapeOp>())
    if (producer.getInput().getType() == getType())
      return producer.getInput();
  return {};
}

LogicalResult ReduceOp::verify() {
  // C1: ascending dimensions of the operand.
  if (failed(checkDims(*this, getDims(), tensorOf(getInput()).getRank())))
    return failure();
  // C2: the operand's shape without them.
  if (failed(checkShape(*this, "a result", getResult(),
                        without(shapeOf(getInput()), getDims()))))
    return failure();
  return checkElement(*this, "a result", getResult(), elementOf(getInput()));
}

LogicalResult BroadcastOp::verify() {
  // C1: ascending dimensions of the result, one per operand dimension.
  if (failed(checkDims(*this, getDims(), tensorOf(getResult()).getRank())))
    return failure();
  if (int64_t(getDims().size()) != tensorOf(getInput()).getRank())
    return emitOpError("expected a dim per operand dimension, got ")
           << getDims().size() << " for " << getInput().getType();
  // C2: sizes agree along them.
  for (auto [dim, size] : llvm::zip(getDims(), shapeOf(getInput())))
    if (shapeOf(getResult())[dim] != size)
      return emitOpError("expected size ")
             << size << " in dimension " << dim << ", got " << getType();
  return checkElement(*this, "a result", getResult(), elementOf(getInput()));
}

/// C1 to C3 of a tensor and its parts along a dimension.
static LogicalResult verifySplit(Operation *op, Value whole, ValueRange parts,
                                 uint64_t dim) {
  SmallVector<int64_t> shape(shapeOf(whole));
  // C1: a dimension of the whole.
  if (dim >= shape.size())
    return op->emitOpError("expected a dimension below ")
           << shape.size() << ", got " << dim;
  int64_t size = shape[dim], sum = 0;
  for (Value part : parts) {
    // C2: sizes agree elsewhere.
    shape[dim] = tensorOf(part).getRank() == int64_t(shape.size())
                     ? shapeOf(part)[dim]
                     : 0;
    sum += shape[dim];
    if (failed(checkShape(op, "a part", part, shape)) ||
        // C3: one element type.
        failed(checkElement(op, "a part", part, elementOf(whole))))
      return failure();
  }
  // C2: and add up along the dimension.
  if (sum != size)
    return op->emitOpError("expected parts of ")
           << size << " in dimension " << dim << ", got " << sum;
  return success();
}

LogicalResult SplitOp::verify() {
  return verifySplit(*this, getInput(), getParts(), getDim());
}

LogicalResult ConcatOp::verify() {
  return verifySplit(*this, getResult(), getParts(), getDim());
}

LogicalResult ActivationGradOp::verify() {
  // C1: a cotangent of up where there is an up.
  if (bool(getUp()) == bool(getUpCotangent()))
    return success();
  return emitOpError("expected ")
         << (getUp() ? 2 : 1) << " results for " << getNumOperands()
         << " operands, got " << getNumResults();
}

LogicalResult RMSNormOp::verify() {
  if (tensorOf(getInput()).getRank() < 1)
    return emitOpError("expected an operand of rank 1 or more");
  // C1: the gain is the last dimension.
  if (failed(
          checkShape(*this, "a gain", getGain(), shapeOf(getInput()).back())))
    return failure();
  // C2: one type.
  if (failed(checkType(*this, "a result", getResult(), getInput().getType())))
    return failure();
  // C3: epsilon is not negative.
  return checkEpsilon(*this, getEpsilon());
}

LogicalResult RMSNormGradOp::verify() {
  if (tensorOf(getInput()).getRank() < 1)
    return emitOpError("expected an operand of rank 1 or more");
  // C1: the gain is the last dimension.
  if (failed(
          checkShape(*this, "a gain", getGain(), shapeOf(getInput()).back())))
    return failure();
  // C2: types agree.
  if (failed(checkType(*this, "a cotangent", getCotangent(),
                       getInput().getType())) ||
      failed(checkType(*this, "an input cotangent", getInputCotangent(),
                       getInput().getType())) ||
      failed(checkShape(*this, "a gain cotangent", getGainCotangent(),
                        shapeOf(getGain()))))
    return failure();
  return checkEpsilon(*this, getEpsilon());
}

LogicalResult RotaryTableOp::verify() {
  // C1: the result is [positions, frequencies, 2].
  if (failed(checkRank(*this, "a result", getResult(), 3)))
    return failure();
  int64_t count = getFrequencies().size();
  if (failed(checkShape(*this, "a result", getResult(),
                        {shapeOf(getResult())[0], count, 2})))
    return failure();
  // C2: frequencies are finite.
  for (double frequency : getFrequencies())
    if (!std::isfinite(frequency))
      return emitOpError("expected finite frequencies, got ") << frequency;
  return success();
}

LogicalResult RopeOp::verify() {
  // C1: [batch, sequence, heads, D] with even D.
  if (failed(checkRank(*this, "an operand", getInput(), 4)) ||
      failed(checkType(*this, "a result", getResult(), getInput().getType())))
    return failure();
  int64_t head = shapeOf(getInput())[3];
  if (head % 2 != 0)
    return emitOpError("expected an even head size, got ") << head;
  // C2: the table is [positions, D/2, 2] with enough positions.
  if (failed(checkRank(*this, "a table", getTable(), 3)) ||
      failed(checkShape(*this, "a table", getTable(),
                        {shapeOf(getTable())[0], head / 2, 2})))
    return failure();
  if (shapeOf(getTable())[0] < shapeOf(getInput())[1])
    return emitOpError("expected a table of at least ")
           << shapeOf(getInput())[1] << " positions, got "
           << shapeOf(getTable())[0];
  return success();
}

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
    return op->emitOpError("expected keys of 1 block behind or more, got ")
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

/// C1 to C7 of attention.
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
  return verifyBlocks(op);
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
