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

/// The rate of step t = 1, 2, ... of `steps`: learningRate * t / warmupSteps in
/// warm-up, then half a cosine from learningRate at t = warmupSteps + 1 to
/// minLearningRate at t = steps + 1.
double learningRateAt(const OptimizerOptions &options, int64_t t,
                      int64_t steps);

class Optimizer {
public:
  Optimizer(Rank &rank, const OptimizerOptions &options);

  /// Sums each gradient over the places and ranks that hold terms of it:
  /// accumulators of one parameter in their fixed order, then its `reduce`
  /// collectives. Once a step. Every rank calls this and `step`.
  void sumGradients();

  /// Updates every parameter with its summed gradient / totalWeight, clipped,
  /// at the given rate; zeroes the gradients and refreshes all copies. Returns
  /// the global norm before clipping; throws RunError when it is not finite.
  /// The gradient is multiplied by clip / (norm + 1e-6) if that is < 1.
  double step(double learningRate, double totalWeight);

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
  double globalNorm();
  void writeScalars(double learningRate, double gradientScale);
  void run(int task, const Update &update, int64_t output);

  /// A sum of squares that counts for the norm.
  struct Square {
    int parameter;
    int64_t layer;
    size_t number; // among those of all ranks, each as many as widest
  };

  Rank &rank;
  OptimizerOptions options;
  std::vector<Term> terms;     // of all stages, in the program's order
  std::vector<Square> squares; // by parameter, layer, part
  size_t widest = 0;           // most updates of a stage
  int64_t steps = 0;           // begun so far: the t of the scalars
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIMIZER_H
