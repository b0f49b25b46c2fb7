// SPDX-License-Identifier: Apache-2.0
//
// The decision whether a step updates anything, on the CPU. The same arithmetic
// in the same order is in lowering/gpu/step-services.mlir, rota_decide_step.
#include "runtime/device/cpu/CpuDevice.h"

#include <algorithm>
#include <cmath>

namespace rota {

/// The mean loss over what counts, 0 where nothing does; and the weight.
static std::pair<double, double> meanLoss(const StepDecision &d) {
  double sum = 0.0, weight = 0.0;
  const StepLosses &losses = d.losses;
  for (int64_t c = 0; c < losses.calls; ++c)
    for (int64_t r = 0; r < losses.rows; ++r) {
      const float *pair =
          losses.values + losses.numbers * (r * losses.calls + c);
      sum += pair[0];
      weight += pair[1];
    }
  return {weight == 0.0 ? 0.0 : sum / weight, weight};
}

/// Whether `value` is more than `deviations` standard deviations above the mean
/// of the first `count` values of the window.
static bool isSpike(double value, const double *window, int64_t count,
                    double deviations) {
  double sum = 0.0, squares = 0.0;
  for (int64_t i = 0; i < count; ++i)
    sum += window[i];
  double mean = sum / static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) {
    double difference = window[i] - mean;
    squares += difference * difference;
  }
  double deviation = std::sqrt(squares / static_cast<double>(count - 1));
  return value - mean > deviations * deviation;
}

static SkipReason reasonOf(const StepDecision &d, double loss) {
  double norm = d.result[kNormResult];
  if (!std::isfinite(loss) || !std::isfinite(norm) ||
      d.result[kWrongResult] >= 0.0)
    return SkipReason::NotFinite;
  auto count = std::min(static_cast<int64_t>(d.history[0]), kHistoryLength);
  if (!(d.deviations > 0.0) || count < kHistoryLength / 2)
    return SkipReason::None;
  const double *losses = d.history + 1, *norms = losses + kHistoryLength;
  if (isSpike(loss, losses, count, d.deviations))
    return SkipReason::Loss;
  return isSpike(norm, norms, count, d.deviations) ? SkipReason::Norm
                                                   : SkipReason::None;
}

static void remember(const StepDecision &d, double loss) {
  int64_t slot = static_cast<int64_t>(d.history[0]) % kHistoryLength;
  d.history[1 + slot] = loss;
  d.history[1 + kHistoryLength + slot] = d.result[kNormResult];
  d.history[0] += 1.0;
}

void CpuDevice::decideStep(const StepDecision &d) {
  auto [loss, weight] = meanLoss(d);
  SkipReason reason = reasonOf(d, loss);
  if (reason == SkipReason::None && weight != 0.0)
    remember(d, loss);
  const float *scalars = d.scalars;
  if (d.result[kSkipResult] != 0.0)
    scalars += d.scalarCount;
  for (int64_t i = 0; i < d.scalarCount; ++i)
    if (i != d.scaleNumber && i != d.skipNumber)
      d.stepScalars[i] = scalars[i];
  d.stepScalars[d.skipNumber] = reason != SkipReason::None ? 1.0F : 0.0F;
  d.result[kSkipResult] = static_cast<double>(reason);
}

} // namespace rota
