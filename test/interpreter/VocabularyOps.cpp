// SPDX-License-Identifier: Apache-2.0
//
// Embedding and cross-entropy, whole and for a part of the vocabulary, with
// their derivatives.
#include "test/interpreter/Interpreter.h"

#include <algorithm>
#include <cmath>

using namespace ::rota::interpreter;
using namespace mlir;
using namespace mlir::rota;

namespace {
/// The entries of the vocabulary that a table's rows or the logits' columns
/// are: all of them, or those from an offset on.
struct Entries {
  Entries(Value offset, int64_t count, Frame &frame)
      : isPart(bool(offset)), first(offset ? frame.get(offset)[0] : 0),
        count(count) {}

  /// The place of a vocabulary entry, none where another part has it.
  std::optional<int64_t> placeOf(double entry) const {
    int64_t place = int64_t(entry) - first;
    if (place < 0 || place >= count)
      return std::nullopt;
    return place;
  }

  /// Their number, without padding behind a vocabulary of that size.
  int64_t within(std::optional<uint64_t> vocabulary) const {
    return vocabulary
               ? std::clamp<int64_t>(int64_t(*vocabulary) - first, 0, count)
               : count;
  }

  bool isPart;
  int64_t first, count;
};
} // namespace

/// Checks that each token is a row of the table, where that is whole.
static LogicalResult checkTokens(Operation *op, const Tensor &tokens,
                                 const Entries &rows) {
  for (double token : tokens.elements)
    if (!rows.isPart && !rows.placeOf(token))
      return op->emitOpError("expected tokens from 0 to ")
             << rows.count - 1 << ", got " << int64_t(token);
  return success();
}

/// result[b, s, :] = table[tokens[b, s] - offset, :], 0 without such a row.
static LogicalResult embedding(EmbeddingOp op, Frame &frame) {
  const Tensor &tokens = frame.get(op.getTokens());
  const Tensor &table = frame.get(op.getTable());
  Entries rows(op.getOffset(), table.dim(0), frame);
  if (failed(checkTokens(op, tokens, rows)))
    return failure();
  Tensor result(shapeOf(op.getResult()));
  int64_t width = table.dim(1);
  for (int64_t row = 0; row < tokens.size(); ++row)
    if (std::optional<int64_t> from = rows.placeOf(tokens[row]))
      for (int64_t i = 0; i < width; ++i)
        result[row * width + i] = table[*from * width + i];
  frame.set(op.getResult(), std::move(result));
  return success();
}

/// result[t, :] = sum of cotangent[b, s, :] where tokens[b, s] = offset + t.
static LogicalResult embeddingGrad(EmbeddingGradOp op, Frame &frame) {
  const Tensor &tokens = frame.get(op.getTokens());
  const Tensor &cotangent = frame.get(op.getCotangent());
  Tensor result(shapeOf(op.getResult()));
  Entries rows(op.getOffset(), result.dim(0), frame);
  if (failed(checkTokens(op, tokens, rows)))
    return failure();
  int64_t width = result.dim(1);
  for (int64_t row = 0; row < tokens.size(); ++row)
    if (std::optional<int64_t> to = rows.placeOf(tokens[row]))
      for (int64_t i = 0; i < width; ++i)
        result[*to * width + i] += cotangent[row * width + i];
  frame.set(op.getResult(), std::move(result));
  return success();
}

/// A target is a class, or negative for a row that does not count.
static LogicalResult checkTargets(Operation *op, const Tensor &targets,
                                  const Entries &classes) {
  for (double target : targets.elements)
    if (!classes.isPart && target >= classes.count)
      return op->emitOpError("expected targets below ")
             << classes.count << ", got " << int64_t(target);
  return success();
}

/// log(sum of exp) of `count` numbers.
static double logSumExp(const double *x, int64_t count) {
  if (count == 0)
    return std::numeric_limits<double>::lowest();
  double largest = *std::max_element(x, x + count), total = 0;
  for (int64_t i = 0; i < count; ++i)
    total += std::exp(x[i] - largest);
  return largest + std::log(total);
}

/// sum = sum of logsumexp(row) - row[target] over rows with target >= 0.
static LogicalResult crossEntropy(CrossEntropyOp op, Frame &frame) {
  const Tensor &logits = frame.get(op.getLogits());
  const Tensor &targets = frame.get(op.getTargets());
  Entries classes(Value(), logits.dim(2), frame);
  if (failed(checkTargets(op, targets, classes)))
    return failure();
  Tensor sum = Tensor::scalar(0), weight = Tensor::scalar(0);
  Tensor logsumexp(targets.shape);
  for (int64_t row = 0; row < targets.size(); ++row) {
    const double *x = &logits.elements[row * classes.count];
    if (targets[row] < 0)
      continue;
    logsumexp[row] = logSumExp(x, classes.count);
    sum[0] += logsumexp[row] - x[int64_t(targets[row])];
    weight[0] += 1;
  }
  frame.set(op.getSum(), std::move(sum));
  frame.set(op.getWeight(), std::move(weight));
  frame.set(op.getLogsumexp(), std::move(logsumexp));
  return success();
}

/// (cotangent + that of the row) * exp(logits - logsumexp)
///     - cotangent * onehot(target - offset).
static LogicalResult crossEntropyGrad(CrossEntropyGradOp op, Frame &frame) {
  const Tensor &logits = frame.get(op.getLogits());
  const Tensor &targets = frame.get(op.getTargets());
  const Tensor &logsumexp = frame.get(op.getLogsumexp());
  double cotangent = frame.get(op.getCotangent())[0];
  Entries classes(op.getOffset(), logits.dim(2), frame);
  if (failed(checkTargets(op, targets, classes)))
    return failure();
  Tensor result(logits.shape);
  for (int64_t row = 0; row < targets.size(); ++row) {
    if (targets[row] < 0)
      continue;
    double ofRow =
        op.getRowCotangent() ? frame.get(op.getRowCotangent())[row] : 0;
    for (int64_t i = 0; i < classes.within(op.getVocabulary()); ++i) {
      int64_t at = row * classes.count + i;
      double probability = std::exp(logits[at] - logsumexp[row]);
      double wanted = i == classes.placeOf(targets[row]) ? 1 : 0;
      result[at] = cotangent * (probability - wanted) + ofRow * probability;
    }
  }
  frame.set(op.getResult(), std::move(result));
  return success();
}

/// parts[b, s] = (logsumexp of the columns, the target's logit or 0).
static void crossEntropyShard(CrossEntropyShardOp op, Frame &frame) {
  const Tensor &logits = frame.get(op.getLogits());
  const Tensor &targets = frame.get(op.getTargets());
  Entries classes(op.getOffset(), logits.dim(2), frame);
  Tensor parts(shapeOf(op.getParts()));
  for (int64_t row = 0; row < targets.size(); ++row) {
    const double *x = &logits.elements[row * classes.count];
    parts[2 * row] = logSumExp(x, classes.within(op.getVocabulary()));
    if (std::optional<int64_t> target = classes.placeOf(targets[row]))
      parts[2 * row + 1] = x[*target];
  }
  frame.set(op.getParts(), std::move(parts));
}

/// logsumexp = log(sum of exp(logsumexp of each part)); the target's logit is
/// the sum of what the parts say of it.
static void crossEntropyMerge(CrossEntropyMergeOp op, Frame &frame) {
  const Tensor &parts = frame.get(op.getParts());
  const Tensor &targets = frame.get(op.getTargets());
  Tensor sum = Tensor::scalar(0), weight = Tensor::scalar(0);
  Tensor logsumexp(targets.shape);
  for (int64_t row = 0; row < targets.size(); ++row) {
    std::vector<double> ofPart;
    double targetLogit = 0;
    for (int64_t i = 0; i < parts.dim(2); i += 2) {
      ofPart.push_back(parts[row * parts.dim(2) + i]);
      targetLogit += parts[row * parts.dim(2) + i + 1];
    }
    if (targets[row] < 0)
      continue;
    logsumexp[row] = logSumExp(ofPart.data(), ofPart.size());
    sum[0] += logsumexp[row] - targetLogit;
    weight[0] += 1;
  }
  frame.set(op.getSum(), std::move(sum));
  frame.set(op.getWeight(), std::move(weight));
  frame.set(op.getLogsumexp(), std::move(logsumexp));
}

void ::rota::interpreter::addVocabularyOps(OpTable &table) {
  table.add(embedding);
  table.add(embeddingGrad);
  table.add(crossEntropy);
  table.add(crossEntropyGrad);
  table.add(crossEntropyShard);
  table.add(crossEntropyMerge);
}
