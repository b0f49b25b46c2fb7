// SPDX-License-Identifier: Apache-2.0
//
// The step's end: sums of gradients, clipping by the global norm, and the
// program's updates, which may be speculative.
#ifndef ROTA_RUNTIME_TRAIN_STEP_OPTIMIZER_H
#define ROTA_RUNTIME_TRAIN_STEP_OPTIMIZER_H

#include "runtime/train/step/GradientNorm.h"
#include "runtime/train/step/GradientSums.h"
#include "runtime/train/step/Publish.h"
#include "runtime/train/step/Skipping.h"
#include "runtime/train/step/Snapshot.h"
#include "runtime/train/step/StepScalars.h"

namespace rota {

/// hasStepBarrier (StepBarrier.h) for this run. Throws InputError where options
/// ask for steps that the device cannot run.
bool hasStepBarrier(Rank &rank, const OptimizerOptions &options,
                    const SkipOptions &skips);

class Optimizer {
public:
  /// Throws InputError as Skipping does. `hasBarrier` must be true where
  /// hasStepBarrier is. Without a barrier, a rank goes on when its own updates
  /// are done: transfers that other stages take part in stay open. With
  /// clipping, such an update is speculative: it assumes that its gradient need
  /// not be clipped.
  ///
  ///   step 7, update | step 8, norm of 7 within the limit | update | step 9
  ///   step 7, update | step 8, norm of 7 above the limit | roll back, 7, 8
  Optimizer(Rank &rank, const OptimizerOptions &options,
            const SkipOptions &skips = {}, bool hasBarrier = true);

  /// The next step is the one after step `done`.
  void continueAfter(int64_t done) { skipping.continueAfter(done); }

  /// The decisions which steps update nothing.
  Skipping &skips() { return skipping; }

  /// Writes the scalars of the next step.
  void begin(double learningRate);

  /// Waits for open transfers of the last step, which the next one reads and
  /// overwrites: terms of gradients that were sent, and copies of other stages'
  /// parameters.
  void settle();

  /// Waits for all that is open, also for other stages that still read
  /// parameters here: after the last step.
  void finish();

  /// GradientSums::make. Once a step. Every rank calls this and `update`.
  void sumGradients();

  /// Updates every parameter with its summed gradient / weight of the losses
  /// that startLoss brought, clipped as Device::finishStep says; zeroes the
  /// gradients and refreshes all copies but those that the next timeline does.
  /// A step that is skipped does not change
  /// parameters and states. Leaves the results of finishStep and decideStep at
  /// RuntimeMemory::result, without the norm where steps have no barrier.
  /// Nothing here waits for the device.
  void update();

  /// Adds to that result what came later: of each step, in order, at most one
  /// step late.
  void finishNorm(std::span<double> result);

  /// Waits for the norm of the last step, where its update was speculative.
  /// False if the gradient had to be clipped, so rollBack() must follow. The
  /// same on all ranks.
  bool isUpdateRight();
  /// Restores the parameters and states from before the last step, step `t`,
  /// and drops gradients. The next step must be `t` again, and its update waits
  /// for the norm; finishNorm does not count it again.
  void rollBack(int64_t t);

  /// The global norm before clipping out of that result, as GradientNorm::of.
  double readNorm(std::span<const double> result) const {
    return norm.of(result);
  }

private:
  void findNorm();
  void updateParameters(Publisher &publisher);

  Rank &rank;
  const OptimizerOptions options;
  const bool hasBarrier;
  const std::vector<InTimeline> inTimeline; // by update of the stage
  GradientSums sums;
  GradientNorm norm;
  StepScalars scalars;
  TableMemory tables; // of the updates
  // Open transfers of the last step: copies of other stages' parameters that
  // come here, and copies of this stage's that were sent.
  Publisher::OpenCopies copies;
  std::unique_ptr<Snapshot> snapshot; // from before the last update
  bool isSpeculative = false;         // the last update was
  bool mustWait = false;              // the next update waits for its norm
  double lastWeight = 0.0;            // weight of the losses of that step
  Skipping skipping;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_OPTIMIZER_H
