// SPDX-License-Identifier: Apache-2.0
//
// The ops of a mixture of experts and their derivatives.
#include "ir/rota/experts/Experts.h"
#include "test/interpreter/Interpreter.h"

#include <algorithm>
#include <cmath>
#include <optional>

using namespace ::rota::interpreter;
using namespace mlir;
using namespace mlir::rota;

/// softmax(logits) or the sigmoid of each.
static std::vector<double> scoresOf(const double *logits, int64_t count,
                                    bool sigmoid) {
  std::vector<double> scores(count);
  double largest = *std::max_element(logits, logits + count), sum = 0;
  for (int64_t i = 0; i < count; ++i)
    sum += scores[i] = std::exp(logits[i] - largest);
  for (int64_t i = 0; i < count; ++i)
    scores[i] = sigmoid ? 1 / (1 + std::exp(-logits[i])) : scores[i] / sum;
  return scores;
}

/// The `k` largest of `values` by number, largest first; equal ones by
/// ascending number. Those that `allowed` lacks are out.
static std::vector<int64_t> largest(const std::vector<double> &values,
                                    const std::vector<bool> &allowed,
                                    int64_t k) {
  std::vector<int64_t> order;
  for (size_t i = 0; i < values.size(); ++i)
    if (allowed[i])
      order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return values[a] > values[b]; });
  order.resize(k);
  return order;
}

/// The experts of the best groups.
static std::vector<bool> expertsOfGroups(RouteOp op,
                                         const std::vector<double> &values) {
  if (!op.getGroups())
    return std::vector<bool>(values.size(), true);
  int64_t groups = *op.getGroups(), size = values.size() / groups;
  std::vector<double> ofGroups;
  for (int64_t group = 0; group < groups; ++group) {
    std::vector<double> own(values.begin() + group * size,
                            values.begin() + (group + 1) * size);
    std::sort(own.rbegin(), own.rend());
    ofGroups.push_back(own[0] + (op.getSigmoid() && size > 1 ? own[1] : 0));
  }
  std::vector<bool> allowed(values.size(), false);
  for (int64_t group :
       largest(ofGroups, std::vector<bool>(groups, true), *op.getTopGroups()))
    for (int64_t i = 0; i < size; ++i)
      allowed[group * size + i] = true;
  return allowed;
}

/// The divisor of the scores of a token's choices.
static double divisorOf(const std::vector<double> &scores, bool normalize,
                        bool sigmoid) {
  if (!normalize)
    return 1;
  double sum = 0;
  for (double score : scores)
    sum += score;
  return sum + (sigmoid ? 1e-20 : 0);
}

static void route(RouteOp op, Frame &frame) {
  const Tensor &logits = frame.get(op.getLogits());
  int64_t count = logits.dim(2), k = shapeOf(op.getExperts())[2];
  Tensor weights(shapeOf(op.getWeights())), experts(shapeOf(op.getExperts()));
  for (int64_t token = 0; token < logits.size() / count; ++token) {
    std::vector<double> scores =
        scoresOf(&logits.elements[token * count], count, op.getSigmoid());
    std::vector<double> values = scores;
    for (int64_t i = 0; op.getBias() && i < count; ++i)
      values[i] += frame.get(op.getBias())[i];
    std::vector<int64_t> chosen =
        largest(values, expertsOfGroups(op, values), k);
    std::vector<double> ofChosen;
    for (int64_t expert : chosen)
      ofChosen.push_back(scores[expert]);
    double divisor = divisorOf(ofChosen, op.getNormalize(), op.getSigmoid());
    for (int64_t j = 0; j < k; ++j) {
      experts[token * k + j] = chosen[j];
      weights[token * k + j] =
          ofChosen[j] / divisor * op.getScaling().convertToDouble();
    }
  }
  frame.set(op.getWeights(), std::move(weights));
  frame.set(op.getExperts(), std::move(experts));
}

/// w_j = scaling s_j / D with D = sum s: ds_j = scaling (dw_j - sum dw w') / D
/// where w' = s / D. softmax: dz_i = s_i (ds_i - sum ds s), where ds is 0 of
/// what is not chosen; sigmoid: dz_i = ds_i s_i (1 - s_i).
static void routeGrad(RouteGradOp op, Frame &frame) {
  const Tensor &logits = frame.get(op.getLogits());
  const Tensor &experts = frame.get(op.getExperts());
  const Tensor &cotangent = frame.get(op.getCotangent());
  double scaling = op.getScaling().convertToDouble();
  int64_t count = logits.dim(2), k = experts.dim(2);
  Tensor result(logits.shape);
  for (int64_t token = 0; token < logits.size() / count; ++token) {
    std::vector<double> scores =
        scoresOf(&logits.elements[token * count], count, op.getSigmoid());
    std::vector<double> ofChosen, ofScores(count, 0.0);
    for (int64_t j = 0; j < k; ++j)
      ofChosen.push_back(scores[int64_t(experts[token * k + j])]);
    double divisor = divisorOf(ofChosen, op.getNormalize(), op.getSigmoid());
    double mean = 0, total = 0;
    for (int64_t j = 0; op.getNormalize() && j < k; ++j)
      mean += cotangent[token * k + j] * ofChosen[j] / divisor;
    for (int64_t j = 0; j < k; ++j) {
      double ofScore = scaling * (cotangent[token * k + j] - mean) / divisor;
      ofScores[int64_t(experts[token * k + j])] += ofScore;
      total += ofScore * ofChosen[j];
    }
    for (int64_t i = 0; i < count; ++i)
      result[token * count + i] =
          op.getSigmoid() ? ofScores[i] * scores[i] * (1 - scores[i])
                          : scores[i] * (ofScores[i] - total);
  }
  frame.set(op.getResult(), std::move(result));
}

/// The choices of an expert in the parts of sequence `b` before part `p`.
static int64_t earlierChoices(ExpertPlacesOp op, Frame &frame, int64_t b,
                              int64_t p, int64_t expert) {
  const Tensor &experts = frame.get(op.getExperts());
  int64_t sequences = experts.dim(0), ofSequence = experts.size() / sequences;
  int64_t ofPart = ofSequence / int64_t(op.getParts()), count = 0;
  if (!op.getOthers())
    return std::count(&experts.elements[b * ofSequence],
                      &experts.elements[b * ofSequence] + p * ofPart,
                      double(expert));
  p += int64_t(frame.get(op.getOffset())[0]);
  for (int64_t earlier = 0; earlier < p; ++earlier)
    count +=
        int64_t(frame.get(op.getOthers())({earlier * sequences + b, expert}));
  return count;
}

/// Places are given out part by part and expert by expert, in the order of
/// choices; a place behind the end of its block is that far behind the end of
/// all rows.
static void expertPlaces(ExpertPlacesOp op, Frame &frame) {
  const Tensor &experts = frame.get(op.getExperts());
  Tensor places(experts.shape), counts(shapeOf(op.getCounts()));
  int64_t sequences = experts.dim(0), parts = op.getParts();
  int64_t choices = experts.dim(1) * experts.dim(2) / parts;
  int64_t expertsOfBlock = counts.dim(1) / int64_t(op.getBlocks());
  int64_t rowsOfBlock = int64_t(op.getRows()) / int64_t(op.getBlocks());
  for (int64_t part = 0; part < parts * sequences; ++part) {
    int64_t used = 0, b = part % sequences, p = part / sequences;
    int64_t start = (b * parts + p) * choices;
    for (int64_t expert = 0; expert < counts.dim(1); ++expert) {
      int64_t block = expert / expertsOfBlock;
      if (expert % expertsOfBlock == 0)
        used = 0;
      int64_t earlier = earlierChoices(op, frame, b, p, expert);
      double &count = counts[part * counts.dim(1) + expert];
      for (int64_t i = start; i < start + choices; ++i) {
        if (experts[i] != expert)
          continue;
        if (op.getCapacity() && earlier + count >= int64_t(*op.getCapacity())) {
          places[i] = -1;
          continue;
        }
        places[i] = used < rowsOfBlock
                        ? block * rowsOfBlock + used
                        : int64_t(op.getRows()) + used - rowsOfBlock;
        ++used;
        ++count;
      }
    }
  }
  frame.set(op.getPlaces(), std::move(places));
  frame.set(op.getCounts(), std::move(counts));
}

/// Calls body(choice, token, row) for each choice that has a row, with the
/// first elements of the token and of the row.
template <typename Op, typename Body>
static void forEachPlace(Op op, Frame &frame, Body body) {
  const Tensor &places = frame.get(op.getPlaces());
  ArrayRef<int64_t> shape = shapeOf(op.getRows());
  int64_t rows = shape[1], width = shape[2];
  int64_t first = op.getOffset() ? int64_t(frame.get(op.getOffset())[0]) : 0;
  for (int64_t choice = 0; choice < places.size(); ++choice) {
    int64_t row = int64_t(places[choice]) - first;
    if (places[choice] < 0 || row < 0 || row >= rows)
      continue;
    int64_t token = choice / places.dim(2), b = token / places.dim(1);
    int64_t p = token % places.dim(1) * int64_t(op.getParts()) / places.dim(1);
    int64_t part = p * places.dim(0) + b;
    body(choice, token * width, (part * rows + row) * width);
  }
}

/// With q the part of token [b, s]:
/// rows[q, places[b, s, j]] += weights[b, s, j] * tokens[b, s].
static void dispatch(DispatchOp op, Frame &frame) {
  const Tensor &tokens = frame.get(op.getTokens());
  Tensor rows(shapeOf(op.getRows()));
  auto add = [&](int64_t choice, int64_t token, int64_t row) {
    double weight = op.getWeights() ? frame.get(op.getWeights())[choice] : 1;
    for (int64_t i = 0; i < tokens.dim(2); ++i)
      rows[row + i] += weight * tokens[token + i];
  };
  forEachPlace(op, frame, add);
  frame.set(op.getRows(), std::move(rows));
}

/// tokens[b, s] = sum over j of weights[b, s, j] * rows[q, places[b, s, j]].
static void combine(CombineOp op, Frame &frame) {
  const Tensor &rows = frame.get(op.getRows());
  Tensor tokens(shapeOf(op.getTokens()));
  auto add = [&](int64_t choice, int64_t token, int64_t row) {
    double weight = op.getWeights() ? frame.get(op.getWeights())[choice] : 1;
    for (int64_t i = 0; i < rows.dim(2); ++i)
      tokens[token + i] += weight * rows[row + i];
  };
  forEachPlace(op, frame, add);
  frame.set(op.getTokens(), std::move(tokens));
}

static void choiceDot(ChoiceDotOp op, Frame &frame) {
  const Tensor &tokens = frame.get(op.getTokens());
  const Tensor &rows = frame.get(op.getRows());
  Tensor result(shapeOf(op.getResult()));
  auto add = [&](int64_t choice, int64_t token, int64_t row) {
    for (int64_t i = 0; i < rows.dim(2); ++i)
      result[choice] += tokens[token + i] * rows[row + i];
  };
  forEachPlace(op, frame, add);
  frame.set(op.getResult(), std::move(result));
}

static void rowDot(RowDotOp op, Frame &frame) {
  const Tensor &lhs = frame.get(op.getLhs()), &rhs = frame.get(op.getRhs());
  Tensor result(shapeOf(op.getResult()));
  for (int64_t i = 0; i < lhs.size(); ++i)
    result[i / lhs.dim(2)] += lhs[i] * rhs[i];
  frame.set(op.getResult(), std::move(result));
}

/// Calls body(row, expert) for each row of [B, R] that has an expert.
template <typename Body>
static LogicalResult forEachRow(Operation *op, const Tensor &counts,
                                int64_t rows, int64_t blocks, Body body) {
  int64_t experts = counts.dim(1), ofBlock = rows / blocks;
  for (int64_t b = 0; b < counts.dim(0); ++b)
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t row = 0;
      for (int64_t x = block * experts / blocks;
           x < (block + 1) * experts / blocks; ++x)
        for (int64_t i = 0; i < counts[b * experts + x]; ++i, ++row) {
          if (row >= ofBlock)
            return op->emitOpError("expected ")
                   << ofBlock << " rows or less in each block, got more";
          body(b * rows + block * ofBlock + row, x);
        }
    }
  return success();
}

/// result[r, f] = sum over e of rows[r, e] * weights[x, e, f].
static LogicalResult groupedProduct(GroupedProductOp op, Frame &frame) {
  const Tensor &rows = frame.get(op.getRows());
  const Tensor &weights = frame.get(op.getWeights());
  Tensor result(shapeOf(op.getResult()));
  int64_t in = rows.dim(2), out = result.dim(2);
  bool isTransposed = op.getTransposed();
  int64_t strideE = isTransposed ? 1 : out, strideF = isTransposed ? in : 1;
  auto multiply = [&](int64_t row, int64_t x) {
    for (int64_t f = 0; f < out; ++f)
      for (int64_t e = 0; e < in; ++e)
        result[row * out + f] +=
            rows[row * in + e] *
            weights[x * in * out + e * strideE + f * strideF];
  };
  if (failed(forEachRow(op, frame.get(op.getCounts()), rows.dim(1),
                        op.getBlocks(), multiply)))
    return failure();
  frame.set(op.getResult(), std::move(result));
  return success();
}

/// result[x, e, f] = sum over the rows r of x of lhs[r, e] * rhs[r, f].
static LogicalResult groupedProductGrad(GroupedProductGradOp op, Frame &frame) {
  const Tensor &lhs = frame.get(op.getLhs()), &rhs = frame.get(op.getRhs());
  Tensor result(shapeOf(op.getResult()));
  int64_t in = lhs.dim(2), out = rhs.dim(2);
  auto add = [&](int64_t row, int64_t x) {
    for (int64_t e = 0; e < in; ++e)
      for (int64_t f = 0; f < out; ++f)
        result[(x * in + e) * out + f] +=
            lhs[row * in + e] * rhs[row * out + f];
  };
  if (failed(forEachRow(op, frame.get(op.getCounts()), lhs.dim(1),
                        op.getBlocks(), add)))
    return failure();
  frame.set(op.getResult(), std::move(result));
  return success();
}

static LogicalResult groupedBias(GroupedBiasOp op, Frame &frame) {
  const Tensor &bias = frame.get(op.getBias());
  Tensor result = frame.get(op.getRows());
  int64_t width = bias.dim(1);
  auto add = [&](int64_t row, int64_t x) {
    for (int64_t i = 0; i < width; ++i)
      result[row * width + i] += bias[x * width + i];
  };
  if (failed(forEachRow(op, frame.get(op.getCounts()), result.dim(1),
                        op.getBlocks(), add)))
    return failure();
  frame.set(op.getResult(), std::move(result));
  return success();
}

static LogicalResult groupedBiasGrad(GroupedBiasGradOp op, Frame &frame) {
  const Tensor &cotangent = frame.get(op.getCotangent());
  Tensor result(shapeOf(op.getResult()));
  int64_t width = result.dim(1);
  auto add = [&](int64_t row, int64_t x) {
    for (int64_t i = 0; i < width; ++i)
      result[x * width + i] += cotangent[row * width + i];
  };
  if (failed(forEachRow(op, frame.get(op.getCounts()), cotangent.dim(1),
                        op.getBlocks(), add)))
    return failure();
  frame.set(op.getResult(), std::move(result));
  return success();
}

static void observe(ObserveOp op, Frame &frame) {
  Tensors *sums = frame.getEnvironment().observedSums;
  if (!sums)
    return;
  const Tensor &counts = frame.get(op.getCounts());
  int64_t columns = counts.dim(1);
  Tensor &sum =
      sums->try_emplace(op.getName().str(), Tensor({columns})).first->second;
  for (int64_t i = 0; i < counts.size(); ++i)
    sum[i % columns] += counts[i];
}

static LogicalResult observedMean(ObservedMeanOp op, Frame &frame) {
  const Tensors *means = frame.getEnvironment().observedMeans;
  auto it = means ? means->find(op.getName().str()) : Tensors::const_iterator();
  if (!means || it == means->end())
    return op.emitOpError("expected a mean of '")
           << op.getName() << "' in the environment";
  frame.set(op.getResult(), it->second);
  return success();
}

/// Shardings do not change a value that is whole.
static void reshardRows(ReshardRowsOp op, Frame &frame) {
  frame.set(op.getResult(), frame.get(op.getValue()));
}

void ::rota::interpreter::addExpertOps(OpTable &table) {
  table.add(route);
  table.add(routeGrad);
  table.add(expertPlaces);
  table.add(dispatch);
  table.add(combine);
  table.add(choiceDot);
  table.add(rowDot);
  table.add(groupedProduct);
  table.add(groupedProductGrad);
  table.add(groupedBias);
  table.add(groupedBiasGrad);
  table.add(reshardRows);
  table.add(observe);
  table.add(observedMean);
}
