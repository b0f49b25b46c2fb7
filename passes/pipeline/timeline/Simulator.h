// SPDX-License-Identifier: Apache-2.0
//
// Runs a timeline against a table of costs: when each action starts and ends,
// how long the step takes, and what each rank holds.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_SIMULATOR_H
#define ROTA_PASSES_PIPELINE_TIMELINE_SIMULATOR_H

#include "ir/pipe/Timeline.h"

#include <array>

namespace rota::pipe {

/// What actions cost, in any unit of time. The defaults are unit slots.
struct CostTable {
  double forward = 1, backward = 1, backwardInput = 1, backwardWeight = 1;
  /// From the start of a message's copy until it has arrived. Messages of one
  /// channel are copied one after the other; computation goes on meanwhile.
  double send = 0;
  /// Transfers, which go on beside computation, those of one kind one after the
  /// other: weights of a chunk (UNSHARD), its gradient (REDUCE_GRAD), residuals
  /// of a chunk and microbatch (OFFLOAD, FETCH).
  double unshard = 0, reduceGrad = 0, offload = 0, fetch = 0;
  /// When not empty: F, B, I and W of each chunk instead of the four above.
  std::vector<std::array<double, 4>> chunks;
  /// When not empty: the transfers of each chunk, by `transferStream`, instead
  /// of the four above.
  std::vector<std::array<double, kTransferStreams>> transfers;
  double of(const Action &action) const;
};

/// When an action runs. SEND, RECV and RESHARD take no time of their rank, for
/// them `start` equals `end`; transfers run beside the actions behind them.
struct TimeSpan {
  double start = 0, end = 0;
};

/// Time in which a rank waits and nothing but this keeps it.
struct Exposure {
  double messages = 0; // values that are made and on their way
  double gathers = 0, reductions = 0, offloads = 0, fetches = 0;
};

struct RankUsage {
  double busy = 0;   // time spent in F, B, I and W
  double bubble = 0; // share of the makespan that is not busy
  Exposure exposed;
  /// Largest number of (chunk, microbatch) pairs whose F is done and whose B
  /// (or W) is not: activations held for the backward, but for those that are
  /// offloaded.
  int peakLive = 0;
  /// Largest number of places posted by RECV_F and not yet read: activations
  /// on their way or waiting, the circular storage among them. RECV_B
  /// likewise. 0 for timelines without communication.
  int peakReceivedForward = 0, peakReceivedBackward = 0;
  /// Largest numbers of chunks that are gathered, of chunks whose gradient is
  /// begun and not reduced (0 without REDUCE_GRAD), and of (chunk, microbatch)
  /// pairs that are offloaded.
  int peakWindows = 0, peakGradients = 0, peakOffloaded = 0;
};

struct Simulation {
  double makespan = 0;
  double bubble = 0; // mean of the ranks' bubbles
  std::vector<RankUsage> ranks;
  std::vector<std::vector<TimeSpan>> spans; // beside the timeline's actions
};

/// Runs `timeline` as Timeline's comment says. Without communication actions
/// each message arrives `send` after its producer has finished, and one action
/// later for each step of delay. Nothing when the timeline does not complete;
/// `verifyTimeline` says why.
std::optional<Simulation> simulate(const Timeline &timeline,
                                   const CostTable &costs);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_SIMULATOR_H
