// SPDX-License-Identifier: Apache-2.0
//
// The step's end: sums of gradients, clipping by the global norm, and the
// program's updates. No sum here depends on which stage owns a parameter or on
// the schedule.
#ifndef ROTA_RUNTIME_TRAIN_OPTIMIZER_H
#define ROTA_RUNTIME_TRAIN_OPTIMIZER_H

#include "runtime/train/Options.h"
#include "runtime/train/Skipping.h"

namespace rota {

class Optimizer {
public:
  /// Throws InputError as Skipping does.
  Optimizer(Rank &rank, const OptimizerOptions &options,
            const SkipOptions &skips = {});

  /// The next step is the one after step `done`.
  void continueAfter(int64_t done) { skipping.continueAfter(done); }

  /// The decisions which steps update nothing.
  Skipping &skips() { return skipping; }

  /// Writes the scalars of the next step.
  void begin(double learningRate);

  /// Sums each gradient over the places and ranks that hold terms of it:
  /// accumulators of one parameter in their fixed order, then its `reduce`
  /// collectives. Once a step. Every rank calls this and `update`.
  void sumGradients();

  /// Updates every parameter with its summed gradient / weight of the losses
  /// that startLoss brought, clipped as Device::finishStep says; zeroes the
  /// gradients and refreshes all copies. A step that is skipped does not change
  /// parameters and states. Leaves the results of finishStep and decideStep at
  /// RuntimeMemory::result. Nothing here waits for the device.
  void update();

  /// The global norm before clipping out of that result; throws RunError when
  /// the gradient is not finite and the step is not skipped.
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
  std::vector<float> scalarsOf(int64_t t, double learningRate) const;
  void run(int task, const Update &update, int64_t output);

  Rank &rank;
  OptimizerOptions options;
  std::vector<Term> terms; // of all stages, in the program's order
  std::vector<NormTerm> norms;
  Skipping skipping;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIMIZER_H
