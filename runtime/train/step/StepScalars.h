// SPDX-License-Identifier: Apache-2.0
//
// The scalars that the updates of a step read: Program::scalars.
#ifndef ROTA_RUNTIME_TRAIN_STEP_STEPSCALARS_H
#define ROTA_RUNTIME_TRAIN_STEP_STEPSCALARS_H

#include "runtime/train/options/OptimizerOptions.h"
#include "runtime/train/rank/Rank.h"

#include <array>

namespace rota {

class StepScalars {
public:
  StepScalars(Rank &rank, const OptimizerOptions &options)
      : rank(rank), options(options) {}

  /// Writes the two versions of a step, for updates of these numbers: those of
  /// Skipping::beginStep.
  void write(std::array<int64_t, 2> numbers, double learningRate) const;
  /// Copies the first version to where updates read it, whose place belongs to
  /// other tasks until then.
  void place() const;
  /// The factor of gradients, one of them. It comes from the norm, as the
  /// decision to skip the step does.
  float *gradientScale() const;

private:
  std::vector<float> of(int64_t t, double learningRate) const;

  Rank &rank;
  const OptimizerOptions options;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_STEPSCALARS_H
