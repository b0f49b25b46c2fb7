// SPDX-License-Identifier: Apache-2.0
//
// The share of a step in which ranks are idle, as measured.
#ifndef ROTA_RUNTIME_TRAIN_STEP_BUBBLE_H
#define ROTA_RUNTIME_TRAIN_STEP_BUBBLE_H

#include "runtime/train/rank/Rank.h"

#include <vector>

namespace rota {

/// The bubble share that measured times give: 1 - busy / (stages * makespan),
/// where the makespan is the longest path through the timelines with each
/// action's seconds [stage][action], as if each rank had a core of its own. So
/// it can be compared with the plan although ranks share this machine's cores.
/// Without a step barrier, a step's time in the steady state stands for the
/// makespan.
double measuredBubble(const Program &program,
                      const std::vector<std::vector<double>> &seconds,
                      bool hasBarrier = true);

/// The measured bubble share, in two steps: a rank starts it and goes on, and
/// rank 0 waits for the others when it needs the share.
class BubbleGather {
public:
  /// `hasBarrier`: the share of a step between two barriers, not of a step in
  /// the steady state.
  explicit BubbleGather(Rank &rank, bool hasBarrier = true);

  bool isOpen() const { return open; }
  /// `seconds`: of each of this rank's actions.
  void start(std::vector<double> seconds);
  /// Once after each start. The share, a mean over the pipelines, on rank 0; 0
  /// on the others.
  double finish();

private:
  double share() const;

  Rank &rank;
  const bool hasBarrier;
  // By rank; on others than rank 0, their own alone. The rank keeps them.
  using Rows = std::vector<std::vector<double>>;
  const std::shared_ptr<Rows> rows;
  std::vector<Request> requests;
  bool open = false;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_BUBBLE_H
