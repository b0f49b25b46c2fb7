// SPDX-License-Identifier: Apache-2.0
//
// The squares of all gradients of a step, of which its norm is made.
#ifndef ROTA_RUNTIME_TRAIN_STEP_GRADIENTNORM_H
#define ROTA_RUNTIME_TRAIN_STEP_GRADIENTNORM_H

#include "runtime/train/rank/Rank.h"

#include <array>
#include <span>

namespace rota {

class GradientNorm {
public:
  GradientNorm(Rank &rank, bool hasBarrier);

  /// Sums the squares of this rank's gradients and brings those of all ranks to
  /// the place that is returned. Without `waits` they are on their way, of at
  /// most two steps, and one of the reads below waits for them.
  const double *gather(bool waits);
  /// The sum of squares that were gathered without `waits`: of each step, in
  /// order; or of the last step, once more.
  SquareSum readNext() { return read(stepsRead++ % 2); }
  SquareSum readLast() { return read((stepsStarted - 1) % 2); }

  /// The norm out of the results of Device::finishStep; throws RunError when
  /// the gradient is not finite and the step is not skipped.
  double of(std::span<const double> result) const;

private:
  Request start(int64_t version);
  SquareSum read(int64_t version);
  double *allSquares(int64_t version) const;

  Rank &rank;
  const bool hasBarrier;
  const std::vector<int64_t> squares; // squarePlaces
  TableMemory tables;
  std::vector<NormTerm> norms;
  std::vector<int32_t> order; // order of the norm: RuntimeMemory::order
  // All-gathers of squares that were not read, by step parity.
  std::array<Request, 2> open{};
  int64_t stepsStarted = 0, stepsRead = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_GRADIENTNORM_H
