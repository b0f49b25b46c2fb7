// SPDX-License-Identifier: Apache-2.0
//
// Since no action depends on who is faster, each action's start is a maximum
// over the ends of those it waits for: ranks advance in any order until none
// can.
#include "passes/pipeline/timeline/Simulator.h"

#include "passes/pipeline/timeline/PeakUsage.h"

#include <algorithm>
#include <map>

namespace rota::pipe {
namespace {

constexpr double kUnknown = -1;

/// Messages from one rank to another in one direction, in order.
struct Channel {
  std::vector<double> sent, posted, arrived;
};

class TimelineRun {
public:
  TimelineRun(const Timeline &timeline, const CostTable &costs)
      : timeline(timeline), shape(timeline.shape), costs(costs),
        communicates(hasCommunication(timeline)), ranks(timeline.ranks.size()) {
    size_t pairs = size_t(shape.chunks()) * shape.microbatches;
    forwardEnd.assign(pairs, kUnknown);
    backwardEnd.assign(pairs, kUnknown);
    inbox.resize(2 * pairs);
    result.spans.resize(ranks.size());
    result.ranks.resize(ranks.size());
    for (RankState &rank : ranks) {
      rank.chunks.resize(shape.repeats + 1);
      rank.copied.assign(rank.chunks.size() * shape.microbatches, 0);
    }
  }

  std::optional<Simulation> run() {
    // Values travel up and down the ranks: sweeps in both directions.
    bool moved = true;
    for (bool up = true; moved; up = !up) {
      moved = false;
      for (size_t i = 0; i < ranks.size(); ++i)
        moved |= advance(up ? i : ranks.size() - 1 - i);
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (result.spans[rank].size() < timeline.ranks[rank].size())
        return std::nullopt;
    report();
    return std::move(result);
  }

private:
  enum Direction { kForward, kBackward };
  struct Message {
    Channel *channel = nullptr;
    size_t index = 0;
  };
  /// When the last transfers of a chunk end.
  struct ChunkState {
    double gathered = 0, reduced = 0;
  };
  struct RankState {
    double clock = 0;
    std::vector<Message> made[2]; // outgoing messages in order of making
    size_t started[2] = {0, 0};   // compute actions that make one
    double streams[kTransferStreams] = {}; // when each is free
    std::vector<ChunkState> chunks;        // per row of chunks
    // When the last copy of a chunk's and microbatch's residuals ends.
    std::vector<double> copied;
  };

  const Timeline &timeline;
  const Shape &shape;
  const CostTable &costs;
  bool communicates;
  std::vector<RankState> ranks;
  std::map<std::tuple<int, int, int>, Channel> channels;
  std::vector<Message> inbox; // per direction, chunk and microbatch
  std::vector<double> forwardEnd, backwardEnd;
  Simulation result;

  double &endOf(std::vector<double> &ends, int chunk, int microbatch) {
    return ends[size_t(chunk) * shape.microbatches + microbatch];
  }

  Message &received(Direction direction, const Action &action) {
    size_t row = size_t(direction) * shape.chunks() + action.chunk;
    return inbox[row * shape.microbatches + action.microbatch];
  }

  /// Sets the arrival times that have become known.
  void deliver(Channel &channel) {
    while (channel.arrived.size() <
           std::min(channel.sent.size(), channel.posted.size())) {
      size_t i = channel.arrived.size();
      double start = std::max(channel.sent[i], channel.posted[i]);
      if (i > 0)
        start = std::max(start, channel.arrived[i - 1]);
      channel.arrived.push_back(start + costs.send);
    }
  }

  static double arrival(const Message &message) {
    return message.index < message.channel->arrived.size()
               ? message.channel->arrived[message.index]
               : kUnknown;
  }

  bool crosses(int from, int to, int microbatch) const {
    return shape.rankOf(from, microbatch) != shape.rankOf(to, microbatch);
  }

  /// When the value that `action` reads from a neighbouring chunk is on the
  /// rank; 0 when it reads none.
  double inputReady(const Action &action, Direction direction) {
    int chunk = action.chunk;
    int from = direction == kForward ? chunk - 1 : chunk + 1;
    if (from < 0 || from >= shape.chunks())
      return 0;
    auto &ends = direction == kForward ? forwardEnd : backwardEnd;
    bool remote = crosses(from, chunk, action.microbatch);
    if (remote && communicates) {
      const Message &message = received(direction, action);
      return message.channel ? arrival(message) : kUnknown;
    }
    double end = endOf(ends, from, action.microbatch);
    if (end == kUnknown || !remote)
      return end;
    Action producer{from, action.kind, action.microbatch};
    return end + costs.send + (timeline.delay - 1) * costs.of(producer);
  }

  /// When the buffer for the next outgoing message is free.
  double bufferReady(const RankState &rank, Direction direction) {
    size_t number = rank.started[direction];
    if (number < kOutgoingBuffers)
      return 0;
    size_t previous = number - kOutgoingBuffers;
    return previous < rank.made[direction].size()
               ? arrival(rank.made[direction][previous])
               : kUnknown;
  }

  /// Runs what the rank can run now. False when that is nothing.
  bool advance(int rank) {
    size_t before = result.spans[rank].size();
    while (result.spans[rank].size() < timeline.ranks[rank].size() &&
           step(rank))
      ;
    return result.spans[rank].size() != before;
  }

  bool step(int rank) {
    const Action &action = timeline.ranks[rank][result.spans[rank].size()];
    RankState &state = ranks[rank];
    if (isCompute(action.kind))
      return compute(rank, action);
    if (isTransfer(action.kind)) {
      result.spans[rank].push_back(transfer(state, action));
      return true;
    }
    if (isMessage(action.kind))
      communicate(rank, action);
    result.spans[rank].push_back({state.clock, state.clock});
    return true;
  }

  double &copied(RankState &state, const Action &action) {
    size_t row = shape.rowOf(action.chunk);
    return state.copied[row * shape.microbatches + action.microbatch];
  }

  TimeSpan transfer(RankState &state, const Action &action) {
    double &free = state.streams[transferStream(action.kind)];
    TimeSpan span{std::max(state.clock, free), 0};
    if (action.kind == ActionKind::Fetch)
      span.start = std::max(span.start, copied(state, action));
    span.end = free = span.start + costs.of(action);
    ChunkState &chunk = state.chunks[shape.rowOf(action.chunk)];
    if (action.kind == ActionKind::Unshard)
      chunk.gathered = span.end;
    else if (action.kind == ActionKind::ReduceGrad)
      chunk.reduced = span.end;
    else
      copied(state, action) = span.end;
    return span;
  }

  void communicate(int rank, const Action &action) {
    RankState &state = ranks[rank];
    bool forward = isForward(action.kind), send = isSend(action.kind);
    // The other end's chunk: after this one in the message's direction for a
    // send, before it for a receive.
    int peer = shape.rankOf(action.chunk + (forward == send ? 1 : -1),
                            action.microbatch);
    Direction direction = forward ? kForward : kBackward;
    Channel &channel =
        channels[{send ? rank : peer, send ? peer : rank, direction}];
    std::vector<double> &times = send ? channel.sent : channel.posted;
    if (send)
      state.made[direction].push_back({&channel, times.size()});
    else
      received(direction, action) = {&channel, times.size()};
    times.push_back(state.clock);
    deliver(channel);
  }

  /// When the neighbouring chunk has made what `action` reads; 0 when it reads
  /// nothing. It has been made when the value is here.
  double inputMade(const Action &action, Direction direction) {
    int from = action.chunk + (direction == kForward ? -1 : 1);
    if (from < 0 || from >= shape.chunks())
      return 0;
    return endOf(direction == kForward ? forwardEnd : backwardEnd, from,
                 action.microbatch);
  }

  bool compute(int rank, const Action &action) {
    RankState &state = ranks[rank];
    Exposure &exposed = result.ranks[rank].exposed;
    double start = state.clock, ignored = 0;
    auto waitFor = [&](double time, double &waited) {
      waited += std::max(0.0, time - start);
      start = std::max(start, time);
    };
    bool forward = action.kind == ActionKind::Forward;
    Direction direction = forward ? kForward : kBackward;
    bool exchanges = action.kind != ActionKind::BackwardWeight;
    if (exchanges) {
      double ready = inputReady(action, direction);
      if (ready == kUnknown)
        return false;
      bool makes =
          communicates &&
          (forward ? shape.sendsForward(action.chunk, action.microbatch)
                   : shape.sendsBackward(action.chunk, action.microbatch));
      double buffer = makes ? bufferReady(state, direction) : 0;
      if (buffer == kUnknown)
        return false;
      waitFor(inputMade(action, direction), ignored);
      waitFor(ready, exposed.messages);
      waitFor(buffer, exposed.messages);
      state.started[direction] += makes;
    }
    ChunkState &chunk = state.chunks[shape.rowOf(action.chunk)];
    waitFor(chunk.gathered, exposed.gathers);
    if (makesGradient(action.kind))
      waitFor(chunk.reduced, exposed.reductions);
    if (!forward)
      waitFor(copied(state, action), exposed.fetches);
    state.clock = start + costs.of(action);
    if (exchanges)
      endOf(forward ? forwardEnd : backwardEnd, action.chunk,
            action.microbatch) = state.clock;
    result.spans[rank].push_back({start, state.clock});
    return true;
  }

  /// The end of a rank's row: its transfers end, and with them the step.
  void finish(RankState &state, Exposure &exposed) {
    double *exposures[] = {&exposed.gathers, &exposed.reductions,
                           &exposed.offloads, &exposed.fetches};
    for (int stream = 0; stream < kTransferStreams; ++stream) {
      *exposures[stream] += std::max(0.0, state.streams[stream] - state.clock);
      state.clock = std::max(state.clock, state.streams[stream]);
    }
  }

  void report() {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      finish(ranks[rank], result.ranks[rank].exposed);
      result.makespan = std::max(result.makespan, ranks[rank].clock);
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      RankUsage &report = result.ranks[rank];
      for (const Action &action : timeline.ranks[rank])
        if (isCompute(action.kind))
          report.busy += costs.of(action);
      countPeakUsage(timeline, int(rank), communicates, report);
      countGradients(rank, report);
      if (result.makespan > 0)
        report.bubble = 1 - report.busy / result.makespan;
      result.bubble += report.bubble / timeline.ranks.size();
    }
  }

  /// Gradients take memory from their first action's start to the end of their
  /// reduction.
  void countGradients(size_t rank, RankUsage &report) const {
    if (!hasAny(timeline, ActionKind::ReduceGrad))
      return;
    std::vector<std::pair<double, int>> changes;
    std::vector<bool> isBegun(shape.repeats + 1);
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
      const Action &action = timeline.ranks[rank][i];
      const TimeSpan &span = result.spans[rank][i];
      auto begun = isBegun[shape.rowOf(action.chunk)];
      if (makesGradient(action.kind) && !begun)
        changes.push_back({span.start, 1});
      else if (action.kind == ActionKind::ReduceGrad)
        changes.push_back({span.end, -1});
      if (makesGradient(action.kind))
        begun = true;
      else if (action.kind == ActionKind::ReduceGrad)
        begun = false;
    }
    // At one time, what ends does so first.
    std::sort(changes.begin(), changes.end());
    int gradients = 0;
    for (auto [time, change] : changes)
      report.peakGradients =
          std::max(report.peakGradients, gradients += change);
  }
};

} // namespace

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

std::optional<Simulation> simulate(const Timeline &timeline,
                                   const CostTable &costs) {
  return TimelineRun(timeline, costs).run();
}

} // namespace rota::pipe
