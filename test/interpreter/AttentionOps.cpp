// SPDX-License-Identifier: Apache-2.0
//
// Attention and rotary position embedding. Here the score matrix is stored.
#include "test/interpreter/Interpreter.h"

#include <cmath>
#include <limits>

using namespace ::rota::interpreter;
using namespace mlir;
using namespace mlir::rota;

/// [p, i, 0] = scale * cos(p * frequencies[i]), [p, i, 1] the sine.
static void rotaryTable(RotaryTableOp op, Frame &frame) {
  Tensor result(shapeOf(op.getResult()));
  double scale = op.getScale().convertToDouble();
  for (int64_t p = 0; p < result.dim(0); ++p)
    for (int64_t i = 0; i < result.dim(1); ++i) {
      double angle = double(p) * op.getFrequencies()[i];
      result({p, i, 0}) = scale * std::cos(angle);
      result({p, i, 1}) = scale * std::sin(angle);
    }
  frame.set(op.getResult(), std::move(result));
}

/// Tokens since the last one before the position that ends a document.
static LogicalResult documentPositions(DocumentPositionsOp op, Frame &frame) {
  const Tensor *tokens = frame.getEnvironment().tokens;
  if (!tokens || ArrayRef<int64_t>(tokens->shape) != shapeOf(op.getResult()))
    return op.emitOpError("expected tokens of the microbatch in the "
                          "environment");
  Tensor result(tokens->shape);
  for (int64_t b = 0; b < result.dim(0); ++b)
    for (int64_t s = 1; s < result.dim(1); ++s) {
      bool isStart = (*tokens)({b, s - 1}) == double(op.getEnd());
      result({b, s}) = isStart ? 0 : result({b, s - 1}) + 1;
    }
  frame.set(op.getResult(), std::move(result));
  return success();
}

/// Pairs a = x[i], b = x[i + D/2] become (a*cos - b*sin, b*cos + a*sin); the
/// inverse has the opposite angle.
static void rope(RopeOp op, Frame &frame) {
  const Tensor &x = frame.get(op.getInput()), &table = frame.get(op.getTable());
  Tensor result(x.shape);
  int64_t half = x.dim(3) / 2;
  for (int64_t b = 0; b < x.dim(0); ++b)
    for (int64_t s = 0; s < x.dim(1); ++s)
      for (int64_t h = 0; h < x.dim(2); ++h)
        for (int64_t i = 0; i < half; ++i) {
          int64_t p = s;
          if (op.getPositions())
            p = int64_t(frame.get(op.getPositions())({b, s}));
          double cos = table({p, i, 0}), sin = table({p, i, 1});
          if (op.getInverse())
            sin = -sin;
          double first = x({b, s, h, i}), second = x({b, s, h, i + half});
          result({b, s, h, i}) = first * cos - second * sin;
          result({b, s, h, i + half}) = second * cos + first * sin;
        }
  frame.set(op.getResult(), std::move(result));
}

namespace {
/// A score and its derivative in scale * dot(query, key).
struct Score {
  double value, slope;
};

/// One head of one sequence, read out of [batch, sequence, heads, D].
struct Head {
  const Tensor &tensor;
  int64_t batch, head;
  double operator()(int64_t position, int64_t i) const {
    return tensor({batch, position, head, i});
  }
};
} // namespace

static double dot(const Head &a, int64_t rowA, const Head &b, int64_t rowB) {
  double sum = 0;
  for (int64_t i = 0; i < a.tensor.dim(3); ++i)
    sum += a(rowA, i) * b(rowB, i);
  return sum;
}

/// Whether position s attends to position t, in the words of the op's
/// description: of a block before or after, or t - `distance` blocks, or beyond
/// the end of the sequence. `b` is the number of the sequence.
template <typename Op>
static bool sees(Op op, Frame &frame, int64_t b, int64_t s, int64_t t) {
  if (op.getKeyPosition())
    return frame.get(op.getKeyPosition())({}) <=
           frame.get(op.getPosition())({});
  if (op.getPosition()) {
    int64_t distance = *op.getBehind(), length = shapeOf(op.getQuery())[1];
    if (frame.get(op.getPosition())({}) < double(distance))
      return op.getBidirectional();
    t -= distance * length;
  }
  if (!op.getBidirectional() && t > s)
    return false;
  if (op.getDocuments() && double(s - t) > frame.get(op.getDocuments())({b, s}))
    return false;
  if (!op.getWindow())
    return true;
  int64_t window = *op.getWindow();
  return s - window < t && t < s + window;
}

template <typename Op>
static Score scoreOf(Op op, const Head &query, int64_t s, const Head &key,
                     int64_t t) {
  double score = op.getScale().convertToDouble() * dot(query, s, key, t);
  if (!op.getSoftCap())
    return {score, 1.0};
  double cap = op.getSoftCap()->convertToDouble();
  double bent = std::tanh(score / cap);
  return {cap * bent, 1.0 - bent * bent};
}

/// softmax(scores) v of each row over the keys that it sees, the sink and
/// the keys before.
static void attention(AttentionOp op, Frame &frame) {
  const Tensor &q = frame.get(op.getQuery()), &k = frame.get(op.getKey()),
               &v = frame.get(op.getValue());
  int64_t group = q.dim(2) / k.dim(2);
  Tensor output(shapeOf(op.getOutput())), logsumexp(shapeOf(op.getLogsumexp()));
  for (int64_t b = 0; b < q.dim(0); ++b)
    for (int64_t h = 0; h < q.dim(2); ++h) {
      Head query{q, b, h}, key{k, b, h / group}, value{v, b, h / group};
      for (int64_t s = 0; s < q.dim(1); ++s) {
        std::vector<std::pair<int64_t, double>> scores;
        for (int64_t t = 0; t < q.dim(1); ++t)
          if (sees(op, frame, b, s, t))
            scores.emplace_back(t, scoreOf(op, query, s, key, t).value);
        double largest = -std::numeric_limits<double>::infinity(), total = 0;
        for (auto [t, score] : scores)
          largest = std::max(largest, score);
        if (op.getPrevious())
          largest = std::max(largest,
                             frame.get(op.getPreviousLogsumexp())({b, h, s}));
        for (auto [t, score] : scores)
          total += std::exp(score - largest);
        if (op.getSinks())
          total += std::exp(frame.get(op.getSinks())({h}) - largest);
        if (op.getPrevious())
          total += std::exp(frame.get(op.getPreviousLogsumexp())({b, h, s}) -
                            largest);
        double lse = largest + std::log(total);
        logsumexp({b, h, s}) = lse;
        for (auto [t, score] : scores)
          for (int64_t i = 0; i < v.dim(3); ++i)
            output({b, s, h, i}) += std::exp(score - lse) * value(t, i);
        if (op.getPrevious())
          for (int64_t i = 0; i < v.dim(3); ++i)
            output({b, s, h, i}) +=
                std::exp(frame.get(op.getPreviousLogsumexp())({b, h, s}) -
                         lse) *
                frame.get(op.getPrevious())({b, s, h, i});
      }
    }
  frame.set(op.getOutput(), std::move(output));
  frame.set(op.getLogsumexp(), std::move(logsumexp));
}

/// With p[s, t] the probabilities and D[s] = dot(do[s], o[s]):
/// dv[t] += p do[s]; ds = p (dot(do[s], v[t]) - D[s]) * slope; dq[s] += scale
/// ds k[t]; dk[t] += scale ds q[s]; dsink -= exp(sink - lse[s]) D[s].
static void attentionGrad(AttentionGradOp op, Frame &frame) {
  const Tensor &dO = frame.get(op.getCotangent()),
               &q = frame.get(op.getQuery()), &k = frame.get(op.getKey()),
               &v = frame.get(op.getValue()), &o = frame.get(op.getOutput()),
               &lse = frame.get(op.getLogsumexp());
  double scale = op.getScale().convertToDouble();
  int64_t group = q.dim(2) / k.dim(2);
  Tensor dq(q.shape), dk(k.shape), dv(v.shape), dSinks({q.dim(2)});
  for (int64_t b = 0; b < q.dim(0); ++b)
    for (int64_t h = 0; h < q.dim(2); ++h) {
      int64_t kv = h / group;
      Head query{q, b, h}, key{k, b, kv}, value{v, b, kv};
      Head output{o, b, h}, cotangent{dO, b, h};
      for (int64_t s = 0; s < q.dim(1); ++s) {
        double mean = dot(cotangent, s, output, s);
        if (op.getSinks())
          dSinks({h}) -=
              std::exp(frame.get(op.getSinks())({h}) - lse({b, h, s})) * mean;
        for (int64_t t = 0; t < q.dim(1); ++t) {
          if (!sees(op, frame, b, s, t))
            continue;
          Score score = scoreOf(op, query, s, key, t);
          double p = std::exp(score.value - lse({b, h, s}));
          double ds =
              scale * p * (dot(cotangent, s, value, t) - mean) * score.slope;
          for (int64_t i = 0; i < v.dim(3); ++i)
            dv({b, t, kv, i}) += p * cotangent(s, i);
          for (int64_t i = 0; i < q.dim(3); ++i) {
            dq({b, s, h, i}) += ds * key(t, i);
            dk({b, t, kv, i}) += ds * query(s, i);
          }
        }
      }
    }
  frame.set(op.getQueryCotangent(), std::move(dq));
  frame.set(op.getKeyCotangent(), std::move(dk));
  frame.set(op.getValueCotangent(), std::move(dv));
  if (op.getSinks())
    frame.set(op.getSinksCotangent(), std::move(dSinks));
}

void ::rota::interpreter::addAttentionOps(OpTable &table) {
  table.add(rotaryTable);
  table.add(documentPositions);
  table.add(rope);
  table.add(attention);
  table.add(attentionGrad);
}
