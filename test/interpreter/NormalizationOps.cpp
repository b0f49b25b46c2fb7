// SPDX-License-Identifier: Apache-2.0
//
// Ops of a row or of single elements with a formula of their own: RMS norm,
// activations, and their derivatives.
#include "test/interpreter/Interpreter.h"

#include <cmath>

using namespace ::rota::interpreter;
using namespace mlir;
using namespace mlir::rota;

/// 1 / sqrt(mean(x^2) + epsilon) of the row of `width` elements at `row`.
static double reciprocalRms(const Tensor &x, int64_t row, int64_t width,
                            double epsilon) {
  double sum = 0;
  for (int64_t i = 0; i < width; ++i)
    sum += x[row * width + i] * x[row * width + i];
  return 1 / std::sqrt(sum / width + epsilon);
}

/// `x` less the mean of each row of `width` elements.
static Tensor centered(Tensor x, int64_t width) {
  for (int64_t row = 0; row < x.size(); row += width) {
    double mean = 0;
    for (int64_t i = row; i < row + width; ++i)
      mean += x[i] / width;
    for (int64_t i = row; i < row + width; ++i)
      x[i] -= mean;
  }
  return x;
}

/// y = x * r * gain.
static void rmsNorm(RMSNormOp op, Frame &frame) {
  const Tensor &gain = frame.get(op.getGain());
  int64_t width = gain.size();
  Tensor x = frame.get(op.getInput());
  if (op.getCentered())
    x = centered(x, width);
  Tensor result(x.shape);
  for (int64_t row = 0; row < x.size() / width; ++row) {
    double r = reciprocalRms(x, row, width, op.getEpsilon().convertToDouble());
    for (int64_t i = 0; i < width; ++i)
      result[row * width + i] = x[row * width + i] * r * gain[i];
  }
  frame.set(op.getResult(), std::move(result));
}

/// dx = r * g - x * r^3 * mean(g * x) with g = dy * gain;
/// dgain = sum over rows of dy * x * r. Centering is linear and its own
/// transpose.
static void rmsNormGrad(RMSNormGradOp op, Frame &frame) {
  const Tensor &dy = frame.get(op.getCotangent());
  const Tensor &gain = frame.get(op.getGain());
  int64_t width = gain.size();
  Tensor x = frame.get(op.getInput());
  if (op.getCentered())
    x = centered(x, width);
  Tensor dx(x.shape), dgain(gain.shape);
  for (int64_t row = 0; row < x.size() / width; ++row) {
    double r = reciprocalRms(x, row, width, op.getEpsilon().convertToDouble());
    double mean = 0;
    for (int64_t i = 0; i < width; ++i)
      mean += dy[row * width + i] * gain[i] * x[row * width + i] / width;
    for (int64_t i = 0; i < width; ++i) {
      int64_t at = row * width + i;
      dx[at] = r * dy[at] * gain[i] - x[at] * r * r * r * mean;
      dgain[i] += dy[at] * x[at] * r;
    }
  }
  if (op.getCentered())
    dx = centered(dx, width);
  frame.set(op.getInputCotangent(), std::move(dx));
  frame.set(op.getGainCotangent(), std::move(dgain));
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// f(x) and its derivative.
static std::pair<double, double> activate(ActivationKind kind, double x) {
  switch (kind) {
  case ActivationKind::Silu: {
    double s = sigmoid(x);
    return {x * s, s * (1 + x * (1 - s))};
  }
  case ActivationKind::Gelu: {
    double share = (1 + std::erf(x / std::sqrt(2.0))) / 2;
    double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    return {x * share, share + x * density};
  }
  case ActivationKind::GeluTanh: {
    double scale = std::sqrt(2 / M_PI);
    double t = std::tanh(scale * (x + 0.044715 * x * x * x));
    double slope = scale * (1 + 3 * 0.044715 * x * x);
    return {x * (1 + t) / 2, (1 + t) / 2 + x * (1 - t * t) * slope / 2};
  }
  }
  llvm_unreachable("every activation is listed");
}

/// f(x) * up.
static void activation(ActivationOp op, Frame &frame) {
  Tensor result = frame.get(op.getInput());
  for (double &x : result.elements)
    x = activate(op.getKind(), x).first;
  if (Value up = op.getUp())
    for (int64_t i = 0; i < result.size(); ++i)
      result[i] *= frame.get(up)[i];
  frame.set(op.getResult(), std::move(result));
}

/// dx = dy * up * f'(x); dup = dy * f(x).
static void activationGrad(ActivationGradOp op, Frame &frame) {
  const Tensor &dy = frame.get(op.getCotangent());
  const Tensor &x = frame.get(op.getInput());
  Value up = op.getUp();
  Tensor dx(x.shape), dup(x.shape);
  for (int64_t i = 0; i < dy.size(); ++i) {
    auto [y, slope] = activate(op.getKind(), x[i]);
    dx[i] = dy[i] * slope * (up ? frame.get(up)[i] : 1);
    dup[i] = dy[i] * y;
  }
  frame.set(op.getInputCotangent(), std::move(dx));
  if (up)
    frame.set(op.getUpCotangent(), std::move(dup));
}

void ::rota::interpreter::addNormalizationOps(OpTable &table) {
  table.add(rmsNorm);
  table.add(rmsNormGrad);
  table.add(activation);
  table.add(activationGrad);
}
