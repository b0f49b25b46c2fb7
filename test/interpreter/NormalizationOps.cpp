// SPDX-License-Identifier: Apache-2.0
//
// Ops of a row or of single elements with a formula of their own: RMS norm,
// SwiGLU, and their derivatives.
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

/// y = x * r * gain.
static void rmsNorm(RMSNormOp op, Frame &frame) {
  const Tensor &x = frame.get(op.getInput()), &gain = frame.get(op.getGain());
  int64_t width = gain.size();
  Tensor result(x.shape);
  for (int64_t row = 0; row < x.size() / width; ++row) {
    double r = reciprocalRms(x, row, width, op.getEpsilon().convertToDouble());
    for (int64_t i = 0; i < width; ++i)
      result[row * width + i] = x[row * width + i] * r * gain[i];
  }
  frame.set(op.getResult(), std::move(result));
}

/// dx = r * g - x * r^3 * mean(g * x) with g = dy * gain;
/// dgain = sum over rows of dy * x * r.
static void rmsNormGrad(RMSNormGradOp op, Frame &frame) {
  const Tensor &dy = frame.get(op.getCotangent());
  const Tensor &x = frame.get(op.getInput()), &gain = frame.get(op.getGain());
  int64_t width = gain.size();
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
  frame.set(op.getInputCotangent(), std::move(dx));
  frame.set(op.getGainCotangent(), std::move(dgain));
}

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// gate * sigmoid(gate) * up.
static void swiglu(SwiGLUOp op, Frame &frame) {
  const Tensor &gate = frame.get(op.getGate()), &up = frame.get(op.getUp());
  Tensor result(gate.shape);
  for (int64_t i = 0; i < result.size(); ++i)
    result[i] = gate[i] * sigmoid(gate[i]) * up[i];
  frame.set(op.getResult(), std::move(result));
}

/// dgate = dy * up * s * (1 + gate * (1 - s)); dup = dy * gate * s.
static void swigluGrad(SwiGLUGradOp op, Frame &frame) {
  const Tensor &dy = frame.get(op.getCotangent());
  const Tensor &gate = frame.get(op.getGate()), &up = frame.get(op.getUp());
  Tensor dgate(gate.shape), dup(gate.shape);
  for (int64_t i = 0; i < dy.size(); ++i) {
    double s = sigmoid(gate[i]);
    dgate[i] = dy[i] * up[i] * s * (1 + gate[i] * (1 - s));
    dup[i] = dy[i] * gate[i] * s;
  }
  frame.set(op.getGateCotangent(), std::move(dgate));
  frame.set(op.getUpCotangent(), std::move(dup));
}

void ::rota::interpreter::addNormalizationOps(OpTable &table) {
  table.add(rmsNorm);
  table.add(rmsNormGrad);
  table.add(swiglu);
  table.add(swigluGrad);
}
