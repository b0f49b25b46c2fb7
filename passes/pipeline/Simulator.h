// SPDX-License-Identifier: Apache-2.0
//
// Runs a timeline against a table of costs: when each action starts and ends,
// how long the step takes, and what each rank holds.
#ifndef ROTA_PASSES_PIPELINE_SIMULATOR_H
#define ROTA_PASSES_PIPELINE_SIMULATOR_H

#include "ir/pipe/Timeline.h"

#include <array>

namespace rota::pipe {

/// What actions cost, in any unit of time. The defaults are unit slots.
struct CostTable {
  double forward = 1, backward = 1, backwardInput = 1, backwardWeight = 1;
  /// From the start of a message's copy until it has arrived. Messages of one
  /// channel are copied one after the other; computation goes on meanwhile.
  double send = 0;
  /// When not empty: F, B, I and W of each chunk instead of the four above.
  std::vector<std::array<double, 4>> chunks;
  double of(const Action &action) const;
};

/// When an action runs. Actions other than F, B, I and W take no time of their
/// rank; for them `start` equals `end`.
struct Span {
  double start = 0, end = 0;
};

struct RankReport {
  double busy = 0;   // time spent in F, B, I and W
  double bubble = 0; // share of the makespan that is not busy
  /// Largest number of (chunk, microbatch) pairs whose F is done and whose B
  /// (or W) is not: activations held for the backward.
  int peakLive = 0;
  /// Largest number of places posted by RECV_F and not yet read: activations
  /// on their way or waiting, the circular storage among them. RECV_B
  /// likewise. 0 for timelines without communication.
  int peakReceivedForward = 0, peakReceivedBackward = 0;
};

struct Simulation {
  double makespan = 0;
  double bubble = 0; // mean of the ranks' bubbles
  std::vector<RankReport> ranks;
  std::vector<std::vector<Span>> spans; // beside the timeline's actions
};

/// Runs `timeline` as Timeline's comment says. Without communication actions
/// each message arrives `send` after its producer has finished, and one action
/// later for each step of delay. Nothing when the timeline does not complete;
/// `verifyTimeline` says why.
std::optional<Simulation> simulate(const Timeline &timeline,
                                   const CostTable &costs);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SIMULATOR_H
