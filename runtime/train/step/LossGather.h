// SPDX-License-Identifier: Apache-2.0
//
// Brings the numbers of the losses of a step to all ranks of the loss, beside
// the timeline: a rank gives its part as soon as it has it, and waits for the
// whole when it needs that.
#ifndef ROTA_RUNTIME_TRAIN_STEP_LOSSGATHER_H
#define ROTA_RUNTIME_TRAIN_STEP_LOSSGATHER_H

#include "runtime/train/rank/Rank.h"

#include <vector>

namespace rota {

/// Every rank of the group starts the same gatherings in the same order.
/// Between two waits an accumulation step is started once at most.
class LossGather {
public:
  explicit LossGather(Rank &rank) : rank(rank) {}

  /// Starts bringing the sums and weights of this rank's last run to the rows
  /// of that accumulation step of RuntimeMemory::losses of each rank. They are
  /// copied first, so tasks may write the next ones. A stage's start calls
  /// leave the weights alone.
  void startWeights(int64_t accumulationStep);
  /// The same, the sums of auxiliary losses, to the rows of that accumulation
  /// step of RuntimeMemory::auxiliary, and startTables.
  void start(int64_t accumulationStep);
  /// Waits, in the order of the device's work, until all that was started has
  /// come.
  void wait();

private:
  void gather(const void *own, int64_t count, const char *reason, void *all);

  Rank &rank;
  std::vector<Request> requests;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_LOSSGATHER_H
