// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic at the end of a step, in f64 and without fused operations: the
// one source for the host and for GPUs. The compiler holds a form of it for
// GPUs (lowering/gpu/services), so this file includes no header of the library.
//
// `Threads` says how the threads that call a function divide its work:
//   isFirst()                 whether this thread has the results
//   each(count, body)         calls body(i) once for each i < count
//   inOrder(count, load, add) calls load(i) once for each i < count, and
//                             add(i, loaded) in the first thread for ascending
//                             i
//   fromFirst(value)          the first thread's value, in all threads
#ifndef ROTA_RUNTIME_DEVICE_STEPEND_H
#define ROTA_RUNTIME_DEVICE_STEPEND_H

#include "runtime/program/StepResult.h"

namespace rota {

/// The losses of a step, f32 [rows, calls, numbers] in device memory: a row of
/// each rank in each round. The first number of each call is the sum of the
/// main loss, the second its weight.
struct StepLosses {
  const float *values;
  int64_t rows, calls, numbers;
};

/// The numbers of a step's end, in device memory.
struct StepNumbers {
  const double *squares; // sums of squares, of which `order` names those that
  const int32_t *order;  // count for the norm, in the order of their addition
  int64_t orderCount;
  StepLosses losses;
  double clip; // the largest norm; 0: none
  float *scale;
  double *result; // [kStepResults]
};

/// Device memory for the decision whether a step updates anything.
struct StepDecision {
  StepLosses losses;
  double deviations;    // 0: only what is not finite is skipped
  double *history;      // [kHistoryNumbers]
  const float *scalars; // [2, scalarCount]
  // The scalars that others give: that of finishStep (-1: none reads it), and
  // the decision.
  int64_t scalarCount, scaleNumber, skipNumber;
  float *stepScalars; // [scalarCount]
  double *result;     // [kStepResults]
};

/// The numbers that make the cotangents of auxiliary losses, in device memory.
struct CotangentNumbers {
  StepLosses losses;
  const double *factors; // [count, 2]: coefficient and divisor
  int64_t count;
  float *cotangents; // [count]
};

/// The host's thread, which does all of the work.
struct OneThread {
  bool isFirst() const { return true; }
  template <typename Body> void each(int64_t count, Body body) const {
    for (int64_t i = 0; i < count; ++i)
      body(i);
  }
  template <typename Load, typename Add>
  void inOrder(int64_t count, Load load, Add add) const {
    for (int64_t i = 0; i < count; ++i)
      add(i, load(i));
  }
  double fromFirst(double value) const { return value; }
};

/// Number `number` of the i-th call of a step: calls ascend, then rows.
inline double lossNumber(const StepLosses &losses, int64_t i, int64_t number) {
  int64_t call = i / losses.rows, row = i % losses.rows;
  return losses.values[losses.numbers * (row * losses.calls + call) + number];
}

/// Device::finishStep, which says what is computed.
template <typename Threads>
void finishStep(Threads threads, const StepNumbers &n) {
  SquareSum squares;
  double weight = 0.0;
  threads.inOrder(
      n.orderCount + n.losses.rows * n.losses.calls,
      [&](int64_t i) {
        return i < n.orderCount ? n.squares[n.order[i]]
                                : lossNumber(n.losses, i - n.orderCount, 1);
      },
      [&](int64_t i, double number) {
        if (i < n.orderCount)
          squares.add(i, number);
        else
          weight += number;
      });
  if (!threads.isFirst())
    return;
  double norm = gradientNorm(squares.total, weight);
  double factor = clipFactor(n.clip, norm);
  *n.scale = weight > 0.0 ? static_cast<float>(factor / weight) : 0.0F;
  n.result[kNormResult] = norm;
  n.result[kWeightResult] = weight;
  n.result[kWrongResult] = squares.wrong;
}

/// In the first thread: whether `value` is more than `deviations` standard
/// deviations above the mean of the first `count` numbers of a window.
template <typename Threads>
bool isSpike(Threads threads, double value, const double *window, int64_t count,
             double deviations) {
  double sum = 0.0, squares = 0.0;
  auto load = [&](int64_t i) { return window[i]; };
  threads.inOrder(count, load, [&](int64_t, double number) { sum += number; });
  double mean = sum / static_cast<double>(count);
  threads.inOrder(count, load, [&](int64_t, double number) {
    double difference = number - mean;
    squares += difference * difference;
  });
  double deviation = __builtin_sqrt(squares / static_cast<double>(count - 1));
  return value - mean > deviations * deviation;
}

/// Device::decideStep.
template <typename Threads>
void decideStep(Threads threads, const StepDecision &d) {
  const float *scalars = d.scalars;
  if (d.result[kSkipResult] != 0.0)
    scalars += d.scalarCount;
  threads.each(d.scalarCount, [&](int64_t i) {
    if (i != d.scaleNumber && i != d.skipNumber)
      d.stepScalars[i] = scalars[i];
  });

  // All threads read this before the first one, which changes it, goes on.
  auto entered = static_cast<int64_t>(d.history[0]);
  int64_t count = entered < kHistoryLength ? entered : kHistoryLength;

  double sum = 0.0, weight = 0.0;
  int64_t pairs = d.losses.rows * d.losses.calls;
  threads.inOrder(
      2 * pairs,
      [&](int64_t i) { return lossNumber(d.losses, i % pairs, i / pairs); },
      [&](int64_t i, double number) {
        if (i < pairs)
          sum += number;
        else
          weight += number;
      });
  double loss = weight == 0.0 ? 0.0 : sum / weight;
  double norm = d.result[kNormResult];
  double *losses = d.history + 1, *norms = losses + kHistoryLength;
  bool isLossSpike = false, isNormSpike = false;
  if (d.deviations > 0.0 && count >= kHistoryLength / 2) {
    isLossSpike = isSpike(threads, loss, losses, count, d.deviations);
    isNormSpike = isSpike(threads, norm, norms, count, d.deviations);
  }

  if (!threads.isFirst())
    return;
  SkipReason reason = isLossSpike   ? SkipReason::Loss
                      : isNormSpike ? SkipReason::Norm
                                    : SkipReason::None;
  if (!__builtin_isfinite(loss) || !__builtin_isfinite(norm) ||
      d.result[kWrongResult] >= 0.0)
    reason = SkipReason::NotFinite;
  bool updates = reason == SkipReason::None;
  if (updates && weight != 0.0) {
    losses[entered % kHistoryLength] = loss;
    norms[entered % kHistoryLength] = norm;
    d.history[0] += 1.0;
  }
  d.stepScalars[d.skipNumber] = updates ? 0.0F : 1.0F;
  d.result[kSkipResult] = static_cast<double>(reason);
}

/// Device::findCotangents.
template <typename Threads>
void findCotangents(Threads threads, const CotangentNumbers &n) {
  double weight = 0.0;
  threads.inOrder(
      n.losses.rows * n.losses.calls,
      [&](int64_t i) { return lossNumber(n.losses, i, 1); },
      [&](int64_t, double number) { weight += number; });
  weight = threads.fromFirst(weight);
  threads.each(n.count, [&](int64_t l) {
    n.cotangents[l] =
        static_cast<float>(n.factors[2 * l] * weight / n.factors[2 * l + 1]);
  });
}

} // namespace rota

#endif // ROTA_RUNTIME_DEVICE_STEPEND_H
