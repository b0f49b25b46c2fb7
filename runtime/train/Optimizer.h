// SPDX-License-Identifier: Apache-2.0
//
// AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", ICLR
// 2019) over all ranks, with clipping by the global norm. No sum here depends
// on which rank owns a parameter or on the schedule.
#ifndef ROTA_RUNTIME_TRAIN_OPTIMIZER_H
#define ROTA_RUNTIME_TRAIN_OPTIMIZER_H

#include "runtime/train/Machine.h"

namespace rota {

struct AdamW {
  double learningRate = 3e-4;
  double minLearningRate = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weightDecay = 0.1;
  double gradientClip = 1.0; // largest global norm; 0: no clipping
  int64_t warmupSteps = 0;
};

/// The rate of step t = 1, 2, ... of `steps`: rises linearly to learningRate at
/// t = warmupSteps, then falls along half a cosine to minLearningRate at
/// t = steps.
double learningRateAt(const AdamW &adamw, int64_t t, int64_t steps);

/// Adds up each parameter's accumulators, in their fixed order, into the first,
/// and zeroes the others.
void sumGradients(Machine &machine);

class Optimizer {
public:
  Optimizer(Machine &machine, const AdamW &adamw)
      : machine(machine), adamw(adamw) {}

  /// Updates every parameter with its summed gradient / totalWeight, clipped,
  /// at the given rate; zeroes the gradients and refreshes all compute copies.
  /// Returns the global norm before clipping; throws RunError when it is not
  /// finite. The gradient is multiplied by clip / (norm + 1e-6) if that is < 1.
  double step(double learningRate, double totalWeight);

private:
  double globalNorm();
  void update(int rank, const Update &update, double learningRate,
              double gradientScale);

  Machine &machine;
  AdamW adamw;
  int64_t steps = 0; // done so far: the t of the bias corrections
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIMIZER_H
