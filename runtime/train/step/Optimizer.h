// SPDX-License-Identifier: Apache-2.0
//
// The step's end: sums of gradients, clipping by the global norm, and the
// program's updates. No sum here depends on which stage owns a parameter or on
// the schedule.
#ifndef ROTA_RUNTIME_TRAIN_STEP_OPTIMIZER_H
#define ROTA_RUNTIME_TRAIN_STEP_OPTIMIZER_H

#include "runtime/train/options/TrainerOptions.h"
#include "runtime/train/step/Skipping.h"
#include "runtime/train/step/Snapshot.h"

#include <array>

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

  /// Sums each gradient over the places and ranks that hold terms of it:
  /// accumulators of one parameter in their fixed order, then its `reduce`
  /// collectives. Once a step. Every rank calls this and `update`.
  void sumGradients();

  /// Updates every parameter with its summed gradient / weight of the losses
  /// that startLoss brought, clipped as Device::finishStep says; zeroes the
  /// gradients and refreshes all copies. A step that is skipped does not change
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

  /// The global norm before clipping out of that result; throws RunError when
  /// the gradient is not finite and the step is not skipped.
  double readNorm(std::span<const double> result) const;

private:
  /// One place of Update::gradients but the first.
  struct Term {
    const Update *update;
    int owner; // the stage of the first place, where the sum is made
    ArenaAddress place;
    int64_t elements;
  };
  void addTerm(const Term &term);
  void addReceived(const Term &term);
  void reduce();
  void findNorm();
  Request startSquares(int64_t version);
  SquareSum readSquares(int64_t version);
  void *allSquares(int64_t version) const;
  void wait(std::vector<Request> &requests);
  float *scaleAddress() const;
  std::vector<float> scalarsOf(int64_t t, double learningRate) const;
  void run(int task, const Update &update, int64_t output);

  Rank &rank;
  OptimizerOptions options;
  const bool hasBarrier;
  std::vector<Term> terms; // of all stages, in the program's order
  std::vector<NormTerm> norms;
  std::vector<int32_t> order; // of the norm: RuntimeMemory::order
  // Open transfers of the last step: copies that came here and terms that were
  // sent, whose places are zeroed behind them; copies that were sent.
  std::vector<Request> open, sentCopies;
  std::vector<const Term *> sentTerms;
  // Of the squares of steps whose norms finishNorm has not told yet.
  std::array<Request, 2> squares{};
  int64_t normsStarted = 0, normsRead = 0;
  std::unique_ptr<Snapshot> snapshot; // from before the last update
  bool isSpeculative = false;         // the last update was
  bool mustWait = false;              // the next update waits for its norm
  double lastWeight = 0.0;            // of the losses of that step
  Skipping skipping;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_OPTIMIZER_H
