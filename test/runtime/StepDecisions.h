// SPDX-License-Identifier: Apache-2.0
//
// The numbers of Device::decideStep, in host memory.
#ifndef ROTA_TEST_RUNTIME_STEPDECISIONS_H
#define ROTA_TEST_RUNTIME_STEPDECISIONS_H

#include "runtime/device/Device.h"

#include <vector>

namespace rota::test {

/// A step with the loss 1 and the norm 1. Scalar i is 10 + i after a step that
/// updates, and 20 + i after one that does not; those of the step are -1 before
/// the decision.
struct DecisionCase {
  static constexpr int64_t kScalars = 6, kScale = 1, kSkip = 4;

  /// With `numbers` of each call of the loss, 2 or more.
  DecisionCase(int64_t rows, int64_t calls, int64_t numbers = 2)
      : rows(rows), calls(calls), numbers(numbers),
        losses(rows * calls * numbers, 1.0F), history(kHistoryNumbers, 0.0),
        stepScalars(kScalars, -1.0F), result(kStepResults, 0.0) {
    for (int64_t i = 0; i < 2 * kScalars; ++i)
      scalars.push_back(
          static_cast<float>(i < kScalars ? 10 + i : 20 + i - kScalars));
    result[kNormResult] = 1.0;
    result[kWrongResult] = -1.0;
  }

  /// The mean, by the sums of all but their weights.
  void setLoss(float loss) {
    for (size_t i = 0; i < losses.size(); i += numbers)
      losses[i] = loss * losses[i + 1];
  }

  StepDecision decision() {
    return {{losses.data(), rows, calls, numbers},
            deviations,
            history.data(),
            scalars.data(),
            kScalars,
            kScale,
            kSkip,
            stepScalars.data(),
            result.data()};
  }

  int64_t rows, calls, numbers;
  double deviations = 0.0;
  std::vector<float> losses;
  std::vector<double> history;
  std::vector<float> scalars, stepScalars;
  std::vector<double> result;
};

} // namespace rota::test

#endif // ROTA_TEST_RUNTIME_STEPDECISIONS_H
