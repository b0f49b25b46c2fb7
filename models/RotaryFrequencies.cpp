// SPDX-License-Identifier: Apache-2.0
//
// Rotary frequencies of a Llama configuration. transformers computes them in
// f32, with an error of a few 1e-8; they are f64 here, since the rounding of
// f32 differs between libraries and an angle multiplies it by the position.
#include "models/LlamaConfig.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace mlir::rota;

/// Frequencies that turn often over the original context are kept, those that
/// turn seldom are divided by the factor, and those between are interpolated
/// (Llama 3.1's `use_scaled_rope`).
static double scaleLlama3(double frequency, const RopeScaling &scaling) {
  double turns = scaling.originalContext * frequency / (2 * std::numbers::pi);
  if (turns > scaling.highFrequencyFactor)
    return frequency;
  if (turns < scaling.lowFrequencyFactor)
    return frequency / scaling.factor;
  double kept = (turns - scaling.lowFrequencyFactor) /
                (scaling.highFrequencyFactor - scaling.lowFrequencyFactor);
  return (1 - kept) * frequency / scaling.factor + kept * frequency;
}

SmallVector<double> mlir::rota::rotaryFrequencies(const LlamaConfig &config) {
  SmallVector<double> frequencies;
  for (int64_t i = 0; i < config.headSize / 2; ++i) {
    double frequency =
        1.0 / std::pow(config.ropeTheta, double(2 * i) / config.headSize);
    switch (config.scaling.kind) {
    case RopeScaling::Kind::None:
      break;
    case RopeScaling::Kind::Linear:
      frequency /= config.scaling.factor;
      break;
    case RopeScaling::Kind::Llama3:
      frequency = scaleLlama3(frequency, config.scaling);
      break;
    }
    frequencies.push_back(frequency);
  }
  return frequencies;
}
