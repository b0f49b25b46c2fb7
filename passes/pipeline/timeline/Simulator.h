// SPDX-License-Identifier: Apache-2.0
//
// Runs a timeline against a table of costs: when each action starts and ends,
// how long the step takes, and what each rank holds.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_SIMULATOR_H
#define ROTA_PASSES_PIPELINE_TIMELINE_SIMULATOR_H

#include "ir/pipe/Timeline.h"
#include "runtime/program/EventRun.h"

#include <array>
#include <optional>

namespace rota::pipe {

/// Costs of actions, in any unit of time. The defaults are unit slots.
struct CostTable {
  double forward = 1, backward = 1, backwardInput = 1, backwardWeight = 1;
  /// Latency of a message, from the start of its copy to its arrival. Messages
  /// of one channel are copied one after the other, beside computation.
  double send = 0;
  /// Transfers run beside computation, those of one kind one after the other:
  /// weights of a chunk (UNSHARD), its gradient (REDUCE_GRAD), residuals of a
  /// chunk and microbatch (OFFLOAD, FETCH), and what a chunk's update exchanges
  /// (SUM_GRAD, REFRESH).
  double unshard = 0, reduceGrad = 0, offload = 0, fetch = 0;
  double sumGrad = 0, refresh = 0;
  /// The time of a pair is that of its longer half and this share of that of
  /// its shorter one. 1: the halves share the arithmetic of one device, and
  /// these costs have no time in which it waits for communication inside of an
  /// action, which is what pairs hide. 0: the shorter one is free.
  double pairShare = 1;
  /// When not empty: F, B, I and W of each chunk instead of the four above.
  std::vector<std::array<double, 4>> chunks;
  /// The cores of a machine that the compute actions of all rows share: who
  /// asks first runs first. A pair counts as one action. 0: any number.
  int64_t cores = 0;
  int64_t ranksOfRow = 1; // each of which asks for a core
  /// Cores that nobody asks for work for the others, and do this share of what
  /// they would do for a row of their own: short work takes as long on several
  /// cores. Nothing: they are not lent.
  std::optional<double> lent = {};
  /// When not empty: the transfers of each chunk, by `transferStream`, instead
  /// of the six above.
  std::vector<std::array<double, kTransferStreams>> transfers;
  /// When not empty: the shares of its rank's speed that they take from work
  /// while both run, likewise.
  std::vector<std::array<double, kTransferStreams>> slowsWork;
  double of(const Action &action) const;
  /// The time of the pair with these halves.
  double ofPair(const Action &first, const Action &second) const;
};

/// Start and end of an action. SEND, RECV and RESHARD take no time of their
/// rank: `start` equals `end`. Transfers run beside the actions after them.
using ::rota::TimeSpan;

/// Exposed times: a rank waits for this alone.
struct Exposure {
  double messages = 0; // values that have been made and not yet arrived
  double gathers = 0, reductions = 0, offloads = 0, fetches = 0;
  double sums = 0, refreshes = 0; // SUM_GRAD, REFRESH
};

/// A time in which a rank waits for one thing alone, and where it counts.
struct Wait {
  TimeSpan span;
  double Exposure::*exposed;
};

struct RankUsage {
  /// Time spent in F, B, I and W, slowed down by transfers; in both halves of a
  /// pair.
  double busy = 0;
  double bubble = 0; // share of the makespan that is not busy
  /// Time between the start of the first and the end of the last of F, B, I
  /// and W in which none of them runs, and its share of the time between.
  double idle = 0, idleShare = 0;
  Exposure exposed;
  std::vector<Wait> waits; // in order of time; `exposed` has their sums
  /// Largest number of (chunk, microbatch) pairs whose F is done and whose B
  /// (or W) is not: activations held for the backward, but for those that are
  /// offloaded.
  int peakLive = 0;
  /// Largest number of places posted by RECV_F and not yet read: activations
  /// in flight or waiting, the circular storage included. RECV_B likewise. 0
  /// for timelines without communication.
  int peakReceivedForward = 0, peakReceivedBackward = 0;
  /// Largest numbers of gathered chunks, of chunks with a gradient that has
  /// begun and is not reduced (0 without REDUCE_GRAD), and of offloaded (chunk,
  /// microbatch) pairs.
  int peakWindows = 0, peakGradients = 0, peakOffloaded = 0;
};

struct Simulation {
  double makespan = 0;
  double bubble = 0; // mean of the ranks' bubbles
  /// The largest of the ranks' idle shares. Unlike bubbles they leave out the
  /// time before a rank's first compute action and after its last.
  double idleShare = 0;
  std::vector<RankUsage> ranks;
  std::vector<std::vector<TimeSpan>> spans; // beside the timeline's actions
};

/// Time that the compute actions of a row take, pairs as one.
double workOf(const std::vector<Action> &row, const CostTable &costs);

/// Runs `timeline` by the rules of Timeline's comment. Without communication
/// actions each message arrives `send` after the end of its producer, and one
/// action later for each step of delay. Nothing when the timeline does not
/// complete; `verifyTimeline` gives the reason.
std::optional<Simulation> simulate(const Timeline &timeline,
                                   const CostTable &costs);

/// Runs `timeline` `steps` times without a barrier between steps: a
/// rank begins its next step when its actions have ended, its transfers and the
/// messages that it sends have arrived, and `stepEnd` has passed, in which it
/// updates. Its ends of the steps, the first entry being the begin of the first
/// step. Nothing when the timeline does not complete.
std::optional<std::vector<StepEnds>> simulateSteps(const Timeline &timeline,
                                                   const CostTable &costs,
                                                   int64_t steps,
                                                   double stepEnd = 0);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_SIMULATOR_H
