// SPDX-License-Identifier: Apache-2.0
//
// The loss on data that is not trained on.
#ifndef ROTA_RUNTIME_TRAIN_EVALUATION_H
#define ROTA_RUNTIME_TRAIN_EVALUATION_H

#include "runtime/data/Batches.h"
#include "runtime/train/Executor.h"

namespace rota {

class Evaluation {
public:
  Evaluation(Rank &rank, Executor &executor, const Options &options,
             const Batches &batches)
      : rank(rank), executor(executor), options(options), batches(batches) {}

  /// Whether step `t` of the training is followed by an evaluation.
  bool follows(int64_t t, bool last) const {
    int64_t interval = options.validationInterval;
    return batches.hasValidation() &&
           (last || (interval > 0 && t % interval == 0));
  }

  /// The mean loss over `validationSteps` batches. Every rank calls, while its
  /// device has no step to do. Throws RunError when a loss is not finite.
  double run();

private:
  Rank &rank;
  Executor &executor;
  const Options &options;
  const Batches &batches;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_EVALUATION_H
