// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a step's end that stay in device memory: their places and
// their meaning, for the devices that write them and for the plan of memory.
// GPUs run this file's functions, too: it includes no header of the library.
#ifndef ROTA_RUNTIME_PROGRAM_STEPRESULT_H
#define ROTA_RUNTIME_PROGRAM_STEPRESULT_H

#include <stdint.h>

namespace rota {

/// Places in the result of a step, f64.
enum StepResult {
  kNormResult,   // norm of the gradient, before clipping
  kWeightResult, // weight of the loss
  kWrongResult,  // the first square that is not finite, or -1
  kScaleResult,  // scratch for an unused factor of gradients
  kSkipResult,   // a SkipReason
  kStepResults
};

/// A sum of squares, and the first one that is not finite, or -1.
struct SquareSum {
  double total = 0.0, wrong = -1.0;

  void add(int64_t number, double square) {
    if (wrong < 0.0 && !__builtin_isfinite(square))
      wrong = static_cast<double>(number);
    total += square;
  }
};

/// The norm of the gradient, whose sum of squares is `total`, over the weight
/// of the loss; 0 where that is.
inline double gradientNorm(double total, double weight) {
  return weight > 0.0 ? __builtin_sqrt(total) / weight : 0.0;
}

/// The factor of a gradient with that norm, so that its norm is at most `clip`.
inline double clipFactor(double clip, double norm) {
  double factor = clip > 0.0 ? clip / (norm + 1e-6) : 1.0;
  return factor < 1.0 ? factor : 1.0;
}

/// Why a step updates nothing.
enum class SkipReason {
  None,      // it does
  NotFinite, // its loss or its gradient is not
  Loss,      // its loss is far above that of the steps before
  Norm       // its gradient's norm is
};

/// Steps that a loss and a norm are compared with. No step is compared with
/// fewer than half as many.
inline constexpr int64_t kHistoryLength = 128;
/// Their numbers, f64: how many steps have entered, then the losses of the last
/// kHistoryLength of them, then their norms. Those of the i-th step, from 0 on,
/// are at i % kHistoryLength. Neither a skipped step nor one in which no target
/// counts enters.
inline constexpr int64_t kHistoryNumbers = 1 + 2 * kHistoryLength;

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_STEPRESULT_H
