// SPDX-License-Identifier: Apache-2.0
//
// The start of an action is the maximum over the ends of the actions that it
// waits for, and does not depend on the order in which ranks are simulated.
#include "passes/pipeline/timeline/Simulator.h"

#include "passes/pipeline/timeline/PeakUsage.h"
#include "passes/pipeline/timeline/ValueClock.h"

#include <algorithm>
#include <span>
#include <utility>

namespace rota::pipe {
namespace {

/// When the transfers of one rank run. Each kind has a stream, on which one
/// follows the other.
class TransferClock {
public:
  explicit TransferClock(const Shape &shape)
      : shape(shape), chunks(shape.repeats + 1),
        copies(chunks.size() * shape.microbatches, 0) {}

  /// Runs a transfer of `duration` that its rank starts at `now`.
  TimeSpan add(const Action &action, double now, double duration) {
    double &free = streams[transferStream(action.kind)];
    TimeSpan span{std::max(now, free), 0};
    if (action.kind == ActionKind::Fetch)
      span.start = std::max(span.start, copied(action));
    span.end = free = span.start + duration;
    ChunkState &chunk = chunks[shape.rowOf(action.chunk)];
    if (action.kind == ActionKind::Unshard)
      chunk.gathered = span.end;
    else if (action.kind == ActionKind::ReduceGrad)
      chunk.reduced = span.end;
    else
      copies[indexOf(action)] = span.end;
    return span;
  }

  /// When the last UNSHARD of the action's chunk ends.
  double gathered(const Action &action) const {
    return chunks[shape.rowOf(action.chunk)].gathered;
  }
  /// When the last REDUCE_GRAD of the action's chunk ends.
  double reduced(const Action &action) const {
    return chunks[shape.rowOf(action.chunk)].reduced;
  }
  /// When the last copy of the residuals of the action's chunk and microbatch
  /// ends.
  double copied(const Action &action) const { return copies[indexOf(action)]; }
  /// When the last transfer of `kind` ends.
  double end(ActionKind kind) const { return streams[transferStream(kind)]; }

private:
  struct ChunkState {
    double gathered = 0, reduced = 0;
  };

  size_t indexOf(const Action &action) const {
    return size_t(shape.rowOf(action.chunk)) * shape.microbatches +
           action.microbatch;
  }

  const Shape &shape;
  double streams[kTransferStreams] = {};
  std::vector<ChunkState> chunks; // per row of chunks
  std::vector<double> copies;     // per row of chunks and microbatch
};

/// The times from which on a compute action may run, by what it needs.
struct Readiness {
  double made = 0;    // the value that it reads, on the rank that makes it
  double arrived = 0; // time on its own rank; kNotYet: unknown
  double buffer = 0;  // for the message that it makes; kNotYet: unknown
  double gathered = 0, reduced = 0, copied = 0;

  bool isKnown() const { return arrived != kNotYet && buffer != kNotYet; }
  /// For a pair, which may run when both halves may.
  void join(const Readiness &other) {
    auto later = [](double &time, double otherTime) {
      bool isUnknown = time == kNotYet || otherTime == kNotYet;
      time = isUnknown ? kNotYet : std::max(time, otherTime);
    };
    later(made, other.made);
    later(arrived, other.arrived);
    later(buffer, other.buffer);
    later(gathered, other.gathered);
    later(reduced, other.reduced);
    later(copied, other.copied);
  }
  double latest() const {
    return std::max({made, arrived, buffer, gathered, reduced, copied});
  }
};

/// Moves `clock` on to `time`, if that is later.
void waitUntil(double time, double &clock, double Exposure::*exposed,
               RankUsage &usage) {
  if (time <= clock)
    return;
  usage.waits.push_back({{clock, time}, exposed});
  usage.exposed.*exposed += time - clock;
  clock = time;
}

/// At the end of its row a rank waits for its transfers.
void waitForTransfers(const TransferClock &transfers, double &clock,
                      RankUsage &usage) {
  for (auto [kind, exposed] :
       {std::pair(ActionKind::Unshard, &Exposure::gathers),
        std::pair(ActionKind::ReduceGrad, &Exposure::reductions),
        std::pair(ActionKind::Offload, &Exposure::offloads),
        std::pair(ActionKind::Fetch, &Exposure::fetches)})
    waitUntil(transfers.end(kind), clock, exposed, usage);
}

/// The messages that a rank makes and sends, by direction.
class OutgoingMessages {
public:
  /// Notes that a compute action makes a message.
  void make(bool forward) { ++made[forward]; }
  void send(bool forward, const MessageClock::Message &message) {
    sent[forward].push_back(message);
  }

  /// When the buffer for the next message is free.
  double bufferReady(bool forward) const {
    if (made[forward] < kOutgoingBuffers)
      return 0;
    size_t previous = made[forward] - kOutgoingBuffers;
    return previous < sent[forward].size()
               ? MessageClock::arrival(sent[forward][previous])
               : kNotYet;
  }

  /// When all have arrived; kNotYet: that is not known yet.
  double arrived() {
    for (int direction : {0, 1})
      for (size_t &next = known[direction]; next < sent[direction].size();
           ++next) {
        double time = MessageClock::arrival(sent[direction][next]);
        if (time == kNotYet)
          return kNotYet;
        last = std::max(last, time);
      }
    return last;
  }

private:
  std::vector<MessageClock::Message> sent[2];
  size_t made[2] = {0, 0};
  // The number of messages whose arrival is known, and their last.
  size_t known[2] = {0, 0};
  double last = 0;
};

class TimelineRun {
public:
  /// `steps`: the timeline has the actions of so many steps in each row,
  /// without a barrier between them. 0: it is one step.
  TimelineRun(const Timeline &timeline, const CostTable &costs,
              size_t steps = 0, double stepEnd = 0)
      : timeline(timeline), shape(timeline.shape), costs(costs), steps(steps),
        stepEnd(stepEnd), communicates(hasCommunication(timeline)),
        values(shape), messages(costs.send),
        ranks(timeline.ranks.size(), RankState{TransferClock(shape)}),
        ends(steps + 1, StepEnds(ranks.size(), 0.0)),
        inbox(2 * size_t(shape.chunks()) * shape.microbatches) {
    result.spans.resize(ranks.size());
    result.ranks.resize(ranks.size());
  }

  /// Spans, exposures and makespan. Nothing when it does not complete.
  std::optional<Simulation> run() {
    if (costs.cores > 0)
      shareCores();
    else
      sweep();
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      if (result.spans[rank].size() < timeline.ranks[rank].size() ||
          ranks[rank].ended < steps)
        return std::nullopt;
      waitForTransfers(ranks[rank].transfers, ranks[rank].clock,
                       result.ranks[rank]);
      result.makespan = std::max(result.makespan, ranks[rank].clock);
    }
    return std::move(result);
  }

  /// After a run: when the ranks began the first step and ended each.
  const std::vector<StepEnds> &stepEnds() const { return ends; }

private:
  struct RankState {
    TransferClock transfers;
    size_t ended = 0; // steps that have ended
    double clock = 0;
    double core = 0; // CostTable::cores: when the next action's is free
    OutgoingMessages outgoing = {};
  };

  const Timeline &timeline;
  const Shape &shape;
  const CostTable &costs;
  size_t steps;
  double stepEnd;
  bool communicates;
  ValueClock values;
  MessageClock messages;
  std::vector<RankState> ranks;
  std::vector<StepEnds> ends;
  // Received messages per direction, chunk and microbatch.
  std::vector<MessageClock::Message> inbox;
  Simulation result;

  MessageClock::Message &received(const Action &action) {
    size_t row = size_t(isForward(action.kind)) * shape.chunks() + action.chunk;
    return inbox[row * shape.microbatches + action.microbatch];
  }

  void sweep() {
    // Values travel up and down the ranks, so sweeps alternate in direction.
    bool moved = true;
    for (bool up = true; moved; up = !up) {
      moved = false;
      for (size_t i = 0; i < ranks.size(); ++i)
        moved |= advance(up ? i : ranks.size() - 1 - i);
    }
  }

  /// Runs the compute action that asks first for a core, again and again.
  /// Actions whose time is not known yet ask later than all that are.
  void shareCores() {
    std::vector<double> free(costs.cores);
    while (true) {
      for (size_t rank = 0; rank < ranks.size(); ++rank)
        while (const Action *action = next(int(rank))) {
          if (isCompute(action->kind))
            break;
          step(int(rank));
        }
      std::optional<std::pair<double, int>> first; // time and rank
      for (size_t rank = 0; rank < ranks.size(); ++rank)
        if (std::optional<double> asks = nextAsks(int(rank)))
          if (!first || *asks < first->first)
            first = {*asks, int(rank)};
      if (!first)
        return;
      RankState &state = ranks[first->second];
      auto core = std::min_element(free.begin(), free.end());
      state.core = *core;
      step(first->second);
      *core = state.clock;
    }
  }

  /// The rank's next action; null: it has done all, or cannot end its step.
  const Action *next(int rank) {
    size_t done = result.spans[rank].size();
    const std::vector<Action> &row = timeline.ranks[rank];
    return endStep(rank, done) && done < row.size() ? &row[done] : nullptr;
  }

  /// Behind the last action of a step the rank waits for its transfers and
  /// messages. False where the arrival of one is not known yet.
  bool endStep(int rank, size_t done) {
    RankState &state = ranks[rank];
    size_t row = timeline.ranks[rank].size();
    if (state.ended == steps || done != row / steps * (state.ended + 1))
      return true;
    double arrived = state.outgoing.arrived();
    if (arrived == kNotYet)
      return false;
    RankUsage &usage = result.ranks[rank];
    waitUntil(arrived, state.clock, &Exposure::messages, usage);
    waitForTransfers(state.transfers, state.clock, usage);
    state.clock += stepEnd;
    ends[++state.ended][rank] = state.clock;
    return true;
  }

  /// The number of actions that start with the rank's next one, itself
  /// included: 2 for a pair.
  size_t atOnce(int rank) {
    size_t left = timeline.ranks[rank].size() - result.spans[rank].size();
    return left > 1 && next(rank)->startsPair ? 2 : 1;
  }

  /// When the rank's next action, which computes, could start but for cores.
  /// Nothing where that is not known yet, or no action is left.
  std::optional<double> nextAsks(int rank) {
    const Action *action = next(rank);
    if (!action)
      return std::nullopt;
    Readiness ready = readiness(rank, {action, atOnce(rank)});
    if (!ready.isKnown())
      return std::nullopt;
    return std::max(ranks[rank].clock, ready.latest());
  }

  /// Runs the rank's next actions while they are ready. False when none is.
  bool advance(int rank) {
    size_t before = result.spans[rank].size();
    while (next(rank) && step(rank))
      ;
    return result.spans[rank].size() != before;
  }

  bool step(int rank) {
    const Action &action = *next(rank);
    RankState &state = ranks[rank];
    if (isCompute(action.kind))
      return compute(rank, {&action, atOnce(rank)});
    TimeSpan span{state.clock, state.clock};
    if (isTransfer(action.kind))
      span = state.transfers.add(action, state.clock, costs.of(action));
    else if (isMessage(action.kind))
      communicate(rank, action);
    result.spans[rank].push_back(span);
    return true;
  }

  void communicate(int rank, const Action &action) {
    RankState &state = ranks[rank];
    bool forward = isForward(action.kind), send = isSend(action.kind);
    // The chunk at the other end is the next one in the message's direction for
    // a send, the previous one for a receive.
    int peer = shape.rankOf(action.chunk + (forward == send ? 1 : -1),
                            action.microbatch);
    MessageClock::Message message =
        messages.add(action.kind, rank, peer, state.clock);
    if (send)
      state.outgoing.send(forward, message);
    else
      received(action) = message;
  }

  /// When the value that `action` reads is on its rank.
  double arrival(const Action &action) {
    if (communicates && values.readsRemote(action))
      return MessageClock::arrival(received(action));
    Action producer{shape.producerOf(action), action.kind, action.microbatch};
    double onItsWay =
        producer.chunk == kNoChunk
            ? 0
            : costs.send + (timeline.delay - 1) * costs.of(producer);
    return values.ready(action, onItsWay);
  }

  /// True when the value that `action` makes goes into a buffer for messages.
  bool makesMessage(const Action &action) const {
    int consumer = shape.consumerOf(action);
    return communicates && consumer != kNoChunk &&
           shape.rankOf(consumer, action.microbatch) !=
               shape.rankOf(action.chunk, action.microbatch);
  }

  Readiness readiness(const RankState &state, const Action &action) {
    Readiness ready;
    bool forward = isForward(action.kind);
    ready.made = values.made(action);
    ready.arrived = arrival(action);
    if (makesMessage(action))
      ready.buffer = state.outgoing.bufferReady(forward);
    ready.gathered = state.transfers.gathered(action);
    if (makesGradient(action.kind))
      ready.reduced = state.transfers.reduced(action);
    if (!forward)
      ready.copied = state.transfers.copied(action);
    return ready;
  }

  Readiness readiness(int rank, std::span<const Action> actions) {
    Readiness ready = readiness(ranks[rank], actions.front());
    for (const Action &other : actions.subspan(1))
      ready.join(readiness(ranks[rank], other));
    return ready;
  }

  /// Runs an action, or both halves of a pair. False when it is not ready.
  bool compute(int rank, std::span<const Action> actions) {
    RankState &state = ranks[rank];
    Readiness ready = readiness(rank, actions);
    if (!ready.isKnown())
      return false;
    double start = std::max(state.clock, ready.made);
    for (auto [time, exposed] :
         {std::pair(ready.arrived, &Exposure::messages),
          std::pair(ready.buffer, &Exposure::messages),
          std::pair(ready.gathered, &Exposure::gathers),
          std::pair(ready.reduced, &Exposure::reductions),
          std::pair(ready.copied, &Exposure::fetches)})
      waitUntil(time, start, exposed, result.ranks[rank]);
    start = std::max(start, state.core);
    state.clock = start + (actions.size() == 2
                               ? costs.ofPair(actions.front(), actions.back())
                               : costs.of(actions.front()));
    for (const Action &action : actions) {
      if (makesMessage(action))
        state.outgoing.make(isForward(action.kind));
      values.end(action, state.clock);
      result.spans[rank].push_back({start, state.clock});
    }
    return true;
  }
};

/// The time from the start of the first compute action of a row to the end of
/// the last.
double activeTime(const std::vector<Action> &row,
                  const std::vector<TimeSpan> &spans) {
  double start = 0, end = 0;
  bool isFirst = true;
  for (size_t i = 0; i < row.size(); ++i) {
    if (!isCompute(row[i].kind))
      continue;
    if (std::exchange(isFirst, false))
      start = spans[i].start;
    end = spans[i].end;
  }
  return end - start;
}

/// Busy and idle times, bubbles and peak usage of a run.
void addReports(const Timeline &timeline, const CostTable &costs,
                Simulation &simulation) {
  bool communicates = hasCommunication(timeline);
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    RankUsage &report = simulation.ranks[rank];
    const std::vector<Action> &row = timeline.ranks[rank];
    report.busy = workOf(row, costs);
    countPeakUsage(timeline, int(rank), communicates, simulation.spans[rank],
                   report);
    if (simulation.makespan > 0)
      report.bubble = 1 - report.busy / simulation.makespan;
    simulation.bubble += report.bubble / timeline.ranks.size();
    double active = activeTime(timeline.ranks[rank], simulation.spans[rank]);
    // Sums of rounded costs may differ in their last bits.
    if (active - report.busy > 1e-9 * active) {
      report.idle = active - report.busy;
      report.idleShare = report.idle / active;
    }
    simulation.idleShare = std::max(simulation.idleShare, report.idleShare);
  }
}

} // namespace

double workOf(const std::vector<Action> &row, const CostTable &costs) {
  double work = 0;
  for (size_t i = 0; i < row.size(); ++i)
    if (isCompute(row[i].kind) && !endsPair(row, i))
      work += row[i].startsPair ? costs.ofPair(row[i], row[i + 1])
                                : costs.of(row[i]);
  return work;
}

double CostTable::of(const Action &action) const {
  if (isCompute(action.kind) && !chunks.empty())
    return chunks[action.chunk][static_cast<int>(action.kind)];
  if (isTransfer(action.kind) && !transfers.empty())
    return transfers[action.chunk][transferStream(action.kind)];
  switch (action.kind) {
  case ActionKind::Forward:
    return forward;
  case ActionKind::Backward:
    return backward;
  case ActionKind::BackwardInput:
    return backwardInput;
  case ActionKind::BackwardWeight:
    return backwardWeight;
  case ActionKind::Unshard:
    return unshard;
  case ActionKind::ReduceGrad:
    return reduceGrad;
  case ActionKind::Offload:
    return offload;
  case ActionKind::Fetch:
    return fetch;
  default:
    return 0;
  }
}

double CostTable::ofPair(const Action &first, const Action &second) const {
  double a = of(first), b = of(second);
  return std::max(a, b) + pairShare * std::min(a, b);
}

std::optional<Simulation> simulate(const Timeline &timeline,
                                   const CostTable &costs) {
  std::optional<Simulation> simulation = TimelineRun(timeline, costs).run();
  if (simulation)
    addReports(timeline, costs, *simulation);
  return simulation;
}

/// The actions of `steps` steps in each row. Each step has microbatches of its
/// own, so no action waits for one of another step on another rank.
static Timeline repeated(const Timeline &timeline, int64_t steps) {
  Timeline result = timeline;
  result.shape.microbatches *= static_cast<int>(steps);
  for (std::vector<Action> &row : result.ranks) {
    size_t length = row.size();
    row.reserve(length * steps);
    for (int64_t step = 1; step < steps; ++step)
      for (size_t i = 0; i < length; ++i) {
        row.push_back(row[i]);
        if (hasMicrobatch(row[i].kind))
          row.back().microbatch +=
              static_cast<int>(step) * timeline.shape.microbatches;
      }
  }
  return result;
}

std::optional<std::vector<StepEnds>> simulateSteps(const Timeline &timeline,
                                                   const CostTable &costs,
                                                   int64_t steps,
                                                   double stepEnd) {
  Timeline all = repeated(timeline, steps);
  TimelineRun run(all, costs, steps, stepEnd);
  bool completes = run.run().has_value();
  return completes ? std::optional(run.stepEnds()) : std::nullopt;
}

} // namespace rota::pipe
