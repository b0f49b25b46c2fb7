// SPDX-License-Identifier: Apache-2.0
//
// The dependencies of the actions of a timeline; EventRun runs them.
#include "passes/pipeline/timeline/Simulator.h"

#include "passes/pipeline/timeline/PeakUsage.h"
#include "passes/pipeline/timeline/ValueClock.h"
#include "runtime/program/EventRun.h"

#include <algorithm>
#include <utility>

namespace rota::pipe {
namespace {

/// When the last transfers of a rank end, by what waits for them.
class TransferEnds {
public:
  explicit TransferEnds(const Shape &shape)
      : shape(shape), chunks(shape.rows() + 1),
        copies(chunks.size() * shape.microbatches, 0) {}

  void end(const Action &action, double time) {
    ChunkState &chunk = chunks[shape.rowOf(action.chunk)];
    switch (action.kind) {
    case ActionKind::Unshard:
      chunk.gathered = time;
      break;
    case ActionKind::ReduceGrad:
      chunk.reduced = time;
      break;
    case ActionKind::SumGrad:
      chunk.summed = time;
      break;
    case ActionKind::Refresh:
      chunk.refreshed = time;
      break;
    default:
      copies[indexOf(action)] = time;
    }
  }

  /// When the last UNSHARD of the action's chunk ends.
  double gathered(const Action &action) const {
    return chunks[shape.rowOf(action.chunk)].gathered;
  }
  /// When the last REDUCE_GRAD of the action's chunk ends.
  double reduced(const Action &action) const {
    return chunks[shape.rowOf(action.chunk)].reduced;
  }
  /// When the last SUM_GRAD and the last REFRESH of the action's chunk end.
  double summed(const Action &action) const {
    return chunks[shape.rowOf(action.chunk)].summed;
  }
  double refreshed(const Action &action) const {
    return chunks[shape.rowOf(action.chunk)].refreshed;
  }
  /// When the last copy of the residuals of the action's chunk and microbatch
  /// ends.
  double copied(const Action &action) const { return copies[indexOf(action)]; }

private:
  struct ChunkState {
    double gathered = 0, reduced = 0, summed = 0, refreshed = 0;
  };

  size_t indexOf(const Action &action) const {
    return size_t(shape.rowOf(action.chunk)) * shape.microbatches +
           action.microbatch;
  }

  const Shape &shape;
  std::vector<ChunkState> chunks; // per row of chunks
  std::vector<double> copies;     // per row of chunks and microbatch
};

/// Fields of Exposure by the causes of waits that `EventRun` counts.
constexpr double Exposure::*kCauses[] = {
    &Exposure::messages, &Exposure::gathers, &Exposure::reductions,
    &Exposure::offloads, &Exposure::fetches, &Exposure::sums,
    &Exposure::refreshes};
enum Cause {
  Messages,
  Gathers,
  Reductions,
  Offloads,
  Fetches,
  Sums,
  Refreshes
};

/// The times from which on a compute action may run, by what it needs.
struct Readiness {
  double made = 0;    // the value that it reads, on the rank that makes it
  double arrived = 0; // time on its own rank; kNotYet: unknown
  double buffer = 0;  // for the message that it makes; kNotYet: unknown
  double gathered = 0, reduced = 0, copied = 0, refreshed = 0;

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
    later(refreshed, other.refreshed);
  }
  /// Waiting for the maker of the value is not exposed.
  void addTo(std::vector<WaitFor> &list) const {
    list.insert(list.end(), {{made},
                             {arrived, Messages},
                             {buffer, Messages},
                             {refreshed, Refreshes},
                             {gathered, Gathers},
                             {reduced, Reductions},
                             {copied, Fetches}});
  }
};

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

/// The rules of Timeline's comment, for EventRun.
class TimelineRules {
public:
  TimelineRules(const Timeline &timeline, const CostTable &costs)
      : timeline(timeline), shape(timeline.shape), costs(costs),
        communicates(hasCommunication(timeline)), values(shape),
        ranks(timeline.ranks.size(), RankState{TransferEnds(shape)}),
        inbox(2 * size_t(shape.chunks()) * shape.microbatches) {
    result.spans.resize(ranks.size());
    result.ranks.resize(ranks.size());
  }

  /// Spans, exposures and makespan. Nothing when it does not complete.
  std::optional<Simulation> simulate() {
    EventRun run(*this, ranks.size(), settings(1, 0));
    events = &run;
    if (!run.run())
      return std::nullopt;
    result.makespan = run.makespan();
    return std::move(result);
  }

  /// The ends of `steps` steps, whose actions stand in each row one after the
  /// other, without a barrier between them.
  std::optional<std::vector<StepEnds>> runSteps(size_t steps, double stepEnd) {
    EventRun run(*this, ranks.size(), settings(steps, stepEnd));
    events = &run;
    waitsForMessages = true;
    return run.run() ? std::optional(run.stepEnds()) : std::nullopt;
  }

  size_t actions(int rank) const { return timeline.ranks[rank].size(); }
  ActionKind kindOf(int rank, size_t i) const {
    return timeline.ranks[rank][i].kind;
  }
  size_t atOnce(int rank, size_t i) const {
    return i + 1 < actions(rank) && timeline.ranks[rank][i].startsPair ? 2 : 1;
  }

  bool waits(int rank, size_t i, std::vector<WaitFor> &list) {
    if (!isCompute(kindOf(rank, i)))
      return true;
    Readiness ready = readiness(ranks[rank], timeline.ranks[rank][i]);
    if (atOnce(rank, i) == 2)
      ready.join(readiness(ranks[rank], timeline.ranks[rank][i + 1]));
    ready.addTo(list);
    return ready.isKnown();
  }

  /// A rank waits for its transfers, and where the next step follows, until its
  /// messages have arrived.
  bool endWaits(int rank, std::vector<WaitFor> &list) {
    if (waitsForMessages)
      list.push_back({ranks[rank].outgoing.arrived(), Messages});
    for (auto [kind, cause] : {std::pair(ActionKind::Unshard, Gathers),
                               {ActionKind::ReduceGrad, Reductions},
                               {ActionKind::Offload, Offloads},
                               {ActionKind::Fetch, Fetches},
                               {ActionKind::SumGrad, Sums},
                               {ActionKind::Refresh, Refreshes}})
      list.push_back({events->streamEnd(rank, kind), cause});
    return list.front().until != kNotYet;
  }

  double duration(int rank, size_t i) const {
    const std::vector<Action> &row = timeline.ranks[rank];
    return atOnce(rank, i) == 2 ? costs.ofPair(row[i], row[i + 1])
                                : costs.of(row[i]);
  }

  double notBefore(int rank, size_t i) const {
    const Action &action = timeline.ranks[rank][i];
    const TransferEnds &ends = ranks[rank].transfers;
    switch (action.kind) {
    case ActionKind::Fetch:
      return ends.copied(action);
    case ActionKind::Unshard:
      return ends.refreshed(action);
    case ActionKind::SumGrad:
      return std::max(ends.reduced(action), ends.summed(action));
    default:
      return 0;
    }
  }

  double slowsWork(int rank, size_t i) const {
    const Action &action = timeline.ranks[rank][i];
    return costs.slowsWork.empty()
               ? 0
               : costs.slowsWork[action.chunk][transferStream(action.kind)];
  }

  /// The chunk at the other end is the next one in the message's direction for
  /// a send, the previous one for a receive.
  int peerOf(int rank, size_t i) const {
    const Action &action = timeline.ranks[rank][i];
    int step = isForward(action.kind) == isSend(action.kind) ? 1 : -1;
    return shape.rankOf(action.chunk + step, action.microbatch);
  }

  void message(int rank, size_t i, const MessageClock::Message &message) {
    const Action &action = timeline.ranks[rank][i];
    if (isSend(action.kind))
      ranks[rank].outgoing.send(isForward(action.kind), message);
    else
      received(action) = message;
  }

  void ended(int rank, size_t i, const TimeSpan &span) {
    const Action &action = timeline.ranks[rank][i];
    result.spans[rank].push_back(span);
    if (isTransfer(action.kind))
      ranks[rank].transfers.end(action, span.end);
    if (!isCompute(action.kind))
      return;
    if (makesMessage(action))
      ranks[rank].outgoing.make(isForward(action.kind));
    values.end(action, span.end);
  }

  void waited(int rank, int cause, const TimeSpan &span) {
    RankUsage &usage = result.ranks[rank];
    usage.waits.push_back({span, kCauses[cause]});
    usage.exposed.*kCauses[cause] += span.end - span.start;
  }

private:
  EventRun<TimelineRules>::Settings settings(size_t steps,
                                             double stepEnd) const {
    return {.latency = costs.send,
            .stepEnd = stepEnd,
            .steps = steps,
            .rowsAtOnce = double(costs.cores) / double(costs.ranksOfRow),
            .lent = costs.lent.value_or(0)};
  }

  struct RankState {
    TransferEnds transfers;
    OutgoingMessages outgoing = {};
  };

  const Timeline &timeline;
  const Shape &shape;
  const CostTable &costs;
  bool communicates, waitsForMessages = false;
  ValueClock values;
  std::vector<RankState> ranks;
  // Received messages per direction, chunk and microbatch.
  std::vector<MessageClock::Message> inbox;
  const EventRun<TimelineRules> *events = nullptr;
  Simulation result;

  MessageClock::Message &received(const Action &action) {
    size_t row = size_t(isForward(action.kind)) * shape.chunks() + action.chunk;
    return inbox[row * shape.microbatches + action.microbatch];
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
    ready.refreshed = state.transfers.refreshed(action);
    if (makesGradient(action.kind))
      ready.reduced = state.transfers.reduced(action);
    if (!forward)
      ready.copied = state.transfers.copied(action);
    return ready;
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

/// The time in which compute actions of a row run, pairs as one.
double busyTime(const std::vector<Action> &row,
                const std::vector<TimeSpan> &spans) {
  double busy = 0;
  for (size_t i = 0; i < row.size(); ++i)
    if (isCompute(row[i].kind) && (i == 0 || !row[i - 1].startsPair))
      busy += spans[i].end - spans[i].start;
  return busy;
}

/// Busy and idle times, bubbles and peak usage of a run.
void addReports(const Timeline &timeline, const CostTable &costs,
                Simulation &simulation) {
  bool communicates = hasCommunication(timeline);
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    RankUsage &report = simulation.ranks[rank];
    const std::vector<Action> &row = timeline.ranks[rank];
    // Costs are exact where cores are not lent and transfers take no time.
    bool isExact = !costs.lent && costs.slowsWork.empty();
    report.busy =
        isExact ? workOf(row, costs) : busyTime(row, simulation.spans[rank]);
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
  case ActionKind::SumGrad:
    return sumGrad;
  case ActionKind::Refresh:
    return refresh;
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
  std::optional<Simulation> simulation =
      TimelineRules(timeline, costs).simulate();
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
  return TimelineRules(all, costs).runSteps(steps, stepEnd);
}

} // namespace rota::pipe
