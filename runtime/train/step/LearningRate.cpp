// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/LearningRate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace rota {

/// The last step before the decay.
static int64_t lastStableStep(const OptimizerOptions &options, int64_t steps) {
  if (options.schedule != LearningRateSchedule::WSD)
    return options.warmupSteps;
  auto decay = static_cast<int64_t>(
      std::llround(options.decayShare * static_cast<double>(steps)));
  return std::max(options.warmupSteps, steps - decay);
}

double learningRateAt(const OptimizerOptions &options, int64_t t,
                      int64_t steps) {
  double peak = options.learningRate, minimum = options.minLearningRate;
  if (t <= options.warmupSteps)
    return peak * static_cast<double>(t) /
           static_cast<double>(options.warmupSteps);
  int64_t stable = lastStableStep(options, steps);
  if (options.schedule == LearningRateSchedule::Constant || t <= stable)
    return peak;
  double x =
      static_cast<double>(t - stable - 1) / static_cast<double>(steps - stable);
  if (options.schedule == LearningRateSchedule::Cosine)
    return minimum +
           (peak - minimum) * 0.5 * (1.0 + std::cos(std::numbers::pi * x));
  return peak + (minimum - peak) * x;
}

} // namespace rota
