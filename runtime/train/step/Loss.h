// SPDX-License-Identifier: Apache-2.0
//
// The loss of a step out of the numbers that its microbatches leave. Every rank
// calls each function that brings them, in the same order.
#ifndef ROTA_RUNTIME_TRAIN_STEP_LOSS_H
#define ROTA_RUNTIME_TRAIN_STEP_LOSS_H

#include "runtime/train/rank/Rank.h"

#include <span>
#include <string>
#include <vector>

namespace rota {

/// A part of the loss: "main" or the name of a term.
struct LossPart {
  std::string name;
  double value = 0.0;
};

/// Sum and weight of the main loss, the sums of its terms, each times its
/// coefficient, and the auxiliary losses.
struct Loss {
  double sum = 0.0;
  double weight = 0.0;
  std::vector<double> terms; // by Program::lossTerms
  double auxiliary = 0.0;

  /// The mean of the main loss: that of a validation. 0 where nothing counts.
  double main() const { return overWeight(sum); }
  /// The mean of what trains: main loss, terms and auxiliary losses. All but
  /// the auxiliary ones are 0 where nothing counts.
  double mean() const;
  /// The main loss and its terms; nothing where the program has no terms.
  std::vector<LossPart> parts(const Program &program) const;

private:
  double overWeight(double value) const {
    return weight > 0.0 ? value / weight : 0.0;
  }
};

/// The losses of all ranks on the device: RuntimeMemory::losses.
StepLosses stepLosses(Rank &rank);

/// LossGather::start of the last run, and the wait for it, both in the order of
/// the device's work.
void startLoss(Rank &rank, int64_t accumulationStep = 0);

/// The loss over all microbatches, ranks and the first `accumulationSteps`, on
/// every rank: in f64, by accumulation step, microbatch, call of the loss and
/// rank; auxiliary losses by layer, microbatch, accumulation step and rank.
/// `result`: the block of RuntimeMemory::result behind a startLoss of each of
/// these accumulation steps. Throws RunError when one is not finite, unless the
/// step `isSkipped`.
Loss finishLoss(Rank &rank, std::span<const char> result,
                int64_t accumulationSteps, bool isSkipped = false);

/// startLoss of the last accumulation step, then finishLoss of all
/// `accumulationSteps`.
Loss gatherLoss(Rank &rank, int64_t accumulationSteps = 1);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_LOSS_H
