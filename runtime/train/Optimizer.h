// SPDX-License-Identifier: Apache-2.0
//
// The step's end: sums of gradients, clipping by the global norm, and the
// program's updates. No sum here depends on which stage owns a parameter or on
// the schedule.
#ifndef ROTA_RUNTIME_TRAIN_OPTIMIZER_H
#define ROTA_RUNTIME_TRAIN_OPTIMIZER_H

#include "runtime/train/Options.h"
#include "runtime/train/Rank.h"

namespace rota {

class Optimizer {
public:
  Optimizer(Rank &rank, const OptimizerOptions &options);

  /// The next step is the one after step `done`.
  void continueAfter(int64_t done) { steps = done; }

  /// Writes the scalars of the next step.
  void begin(double learningRate);

  /// Sums each gradient over the places and ranks that hold terms of it:
  /// accumulators of one parameter in their fixed order, then its `reduce`
  /// collectives. Once a step. Every rank calls this and `update`.
  void sumGradients();

  /// Updates every parameter with its summed gradient / weight of the losses
  /// that startLoss brought, clipped as Device::finishStep says; zeroes the
  /// gradients and refreshes all copies. Leaves the result of finishStep at
  /// RuntimeMemory::result. Nothing here waits for the device.
  void update();

  /// The global norm before clipping out of that result; throws RunError when
  /// it is not finite.
  double readNorm(std::span<const double> result) const;

private:
  /// One place of Update::gradients but the first.
  struct Term {
    const Update *update;
    int owner; // the stage of the first place, where the sum is made
    ArenaPlace place;
    int64_t elements;
  };
  void addTerm(const Term &term);
  void addReceived(const Term &term);
  void reduce();
  void findNorm();
  float *scalePlace() const;
  void run(int task, const Update &update, int64_t output);

  Rank &rank;
  OptimizerOptions options;
  std::vector<Term> terms; // of all stages, in the program's order
  std::vector<NormTerm> norms;
  int64_t steps = 0; // begun so far: the t of the scalars
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIMIZER_H
