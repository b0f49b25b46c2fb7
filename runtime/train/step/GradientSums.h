// SPDX-License-Identifier: Apache-2.0
//
// The sums of a step's gradients over the places and ranks that hold terms of
// them. No sum depends on which stage owns a parameter or on the schedule.
#ifndef ROTA_RUNTIME_TRAIN_STEP_GRADIENTSUMS_H
#define ROTA_RUNTIME_TRAIN_STEP_GRADIENTSUMS_H

#include "runtime/train/step/UpdateTransfers.h"

namespace rota {

class GradientSums {
public:
  /// Without a step barrier a rank goes on while the owners still read its
  /// terms.
  GradientSums(Rank &rank, bool hasBarrier);

  /// Sums each gradient: accumulators of one parameter in their fixed order,
  /// then those of its `reduce` collectives that the timeline has not done.
  /// Once a step, after the timeline of its last accumulation step. Every rank
  /// calls.
  void make();
  /// Waits for terms that were sent and zeroes them.
  void settle();
  /// Zeroes all gradients of this rank, which nobody reads.
  void drop();

private:
  /// One place of Update::gradients but the first.
  struct Term {
    const Update *update;
    int owner; // the stage of the first place, where the sum is made
    ArenaAddress place;
    int64_t elements;
    ElementType type;
    int64_t bytes() const { return byteSize(type) * elements; }
  };
  void addTerm(const Term &term);
  void addReceived(const Term &term);
  void reduce();
  void zeroOthers(const Update &update);

  Rank &rank;
  const bool hasBarrier;
  const std::vector<InTimeline> inTimeline; // by update of the stage
  std::vector<Term> terms;    // terms of all stages, in the program's order
  std::vector<Request> sends; // of terms of the last step
  std::vector<const Term *> sentTerms;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_GRADIENTSUMS_H
