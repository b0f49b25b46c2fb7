// SPDX-License-Identifier: Apache-2.0
//
// The loss on data that is not trained on.
#ifndef ROTA_RUNTIME_TRAIN_EVALUATION_H
#define ROTA_RUNTIME_TRAIN_EVALUATION_H

#include "runtime/checkpoint/BestValidation.h"
#include "runtime/data/Batches.h"
#include "runtime/train/options/ValidationOptions.h"
#include "runtime/train/step/Executor.h"
#include "runtime/train/step/Loss.h"
#include "runtime/train/step/RunValues.h"

#include <optional>

namespace rota {

class Evaluation : public RunValues {
public:
  Evaluation(Rank &rank, Executor &executor, const ValidationOptions &options,
             const Batches &batches)
      : rank(rank), executor(executor), options(options), batches(batches) {}

  /// Whether step `t` of the training is followed by an evaluation.
  bool follows(int64_t t, bool last) const {
    int64_t interval = options.interval;
    return batches.hasValidation() &&
           (last || (interval > 0 && t % interval == 0));
  }

  /// Sum and weight of the main loss of the model after step `t`, without terms
  /// and auxiliary losses, which only train: over all batches of a validation,
  /// in f64, the same on all ranks. None when a signal ended the validation
  /// between two batches: then nothing has changed. Every rank calls, while its
  /// device has no step to do. Throws RunError when a loss is not finite, and
  /// InputError when no target counts.
  std::optional<Loss> run(int64_t t);

  const std::optional<BestValidation> &best() const { return least; }
  /// Whether the evaluation after step `t` had the least loss so far.
  bool isBest(int64_t t) const { return least && least->step == t; }
  /// Whether a loss so far is at most the target that ends the run.
  bool reachedTarget() const {
    return options.targetLoss > 0.0 && least &&
           least->loss <= options.targetLoss;
  }

  /// best().
  void save(RunState &state) const override;
  /// Throws InputError as bestValidation.
  void restore(const RunState &state) override;

private:
  Rank &rank;
  Executor &executor;
  const ValidationOptions &options;
  const Batches &batches;
  std::optional<BestValidation> least;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_EVALUATION_H
