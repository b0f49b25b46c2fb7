// SPDX-License-Identifier: Apache-2.0
//
// Since no action depends on who is faster, each action's start is a maximum
// over the ends of those it waits for: ranks advance in any order until none
// can.
#include "passes/pipeline/Simulator.h"

#include <algorithm>
#include <map>

namespace rota::pipe {
namespace {

constexpr double kUnknown = -1;

/// Messages from one rank to another in one direction, in order.
struct Channel {
  std::vector<double> sent, posted, arrived;
};

class Machine {
public:
  Machine(const Timeline &timeline, const CostTable &costs)
      : timeline(timeline), shape(timeline.shape), costs(costs),
        communicates(hasCommunication(timeline)), ranks(timeline.ranks.size()) {
    size_t pairs = size_t(shape.chunks()) * shape.microbatches;
    forwardEnd.assign(pairs, kUnknown);
    backwardEnd.assign(pairs, kUnknown);
    inbox.resize(2 * pairs);
    result.spans.resize(ranks.size());
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
  struct RankState {
    double clock = 0;
    std::vector<Message> made[2]; // outgoing messages in order of making
    size_t started[2] = {0, 0};   // compute actions that make one
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

  /// When the value that `action` reads from a neighbouring chunk is on the
  /// rank; 0 when it reads none.
  double inputReady(const Action &action, Direction direction) {
    int chunk = action.chunk;
    int from = direction == kForward ? chunk - 1 : chunk + 1;
    if (from < 0 || from >= shape.chunks())
      return 0;
    auto &ends = direction == kForward ? forwardEnd : backwardEnd;
    bool remote = shape.rankOf(from) != shape.rankOf(chunk);
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
    if (action.kind <= ActionKind::RecvBackward) {
      bool forward = action.kind == ActionKind::SendForward ||
                     action.kind == ActionKind::RecvForward;
      bool send = action.kind == ActionKind::SendForward ||
                  action.kind == ActionKind::SendBackward;
      // The other end's chunk: after this one in the message's direction for a
      // send, before it for a receive.
      int peer = shape.rankOf(action.chunk + (forward == send ? 1 : -1));
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
    result.spans[rank].push_back({state.clock, state.clock});
    return true;
  }

  bool compute(int rank, const Action &action) {
    RankState &state = ranks[rank];
    double start = state.clock;
    auto waitFor = [&](double time) {
      start = std::max(start, time);
      return time != kUnknown;
    };
    if (action.kind != ActionKind::BackwardWeight) {
      bool forward = action.kind == ActionKind::Forward;
      Direction direction = forward ? kForward : kBackward;
      if (!waitFor(inputReady(action, direction)))
        return false;
      bool makes = forward ? shape.sendsForward(action.chunk)
                           : shape.sendsBackward(action.chunk);
      if (communicates && makes) {
        if (!waitFor(bufferReady(state, direction)))
          return false;
        ++state.started[direction];
      }
      endOf(forward ? forwardEnd : backwardEnd, action.chunk,
            action.microbatch) = start + costs.of(action);
    }
    state.clock = start + costs.of(action);
    result.spans[rank].push_back({start, state.clock});
    return true;
  }

  void report() {
    for (const RankState &rank : ranks)
      result.makespan = std::max(result.makespan, rank.clock);
    for (const std::vector<Action> &row : timeline.ranks) {
      RankReport &report = result.ranks.emplace_back();
      int live = 0, received[2] = {0, 0};
      for (const Action &action : row) {
        if (isCompute(action.kind))
          report.busy += costs.of(action);
        count(action, live, received);
        report.peakLive = std::max(report.peakLive, live);
        report.peakReceivedForward =
            std::max(report.peakReceivedForward, received[kForward]);
        report.peakReceivedBackward =
            std::max(report.peakReceivedBackward, received[kBackward]);
      }
      if (result.makespan > 0)
        report.bubble = 1 - report.busy / result.makespan;
      result.bubble += report.bubble / timeline.ranks.size();
    }
  }

  /// Follows what a rank holds over one action.
  void count(const Action &action, int &live, int (&received)[2]) const {
    switch (action.kind) {
    case ActionKind::RecvForward:
      ++received[kForward];
      return;
    case ActionKind::RecvBackward:
      ++received[kBackward];
      return;
    case ActionKind::Forward:
      ++live;
      if (communicates && action.chunk > 0 &&
          shape.sendsForward(action.chunk - 1))
        --received[kForward];
      return;
    case ActionKind::Backward:
    case ActionKind::BackwardInput:
      if (communicates && action.chunk + 1 < shape.chunks() &&
          shape.sendsBackward(action.chunk + 1))
        --received[kBackward];
      if (action.kind == ActionKind::Backward)
        --live;
      return;
    case ActionKind::BackwardWeight:
      --live;
      return;
    default:
      return;
    }
  }
};

} // namespace

double CostTable::of(const Action &action) const {
  if (!chunks.empty())
    return chunks[action.chunk][static_cast<int>(action.kind)];
  switch (action.kind) {
  case ActionKind::Forward:
    return forward;
  case ActionKind::Backward:
    return backward;
  case ActionKind::BackwardInput:
    return backwardInput;
  case ActionKind::BackwardWeight:
    return backwardWeight;
  default:
    return 0;
  }
}

std::optional<Simulation> simulate(const Timeline &timeline,
                                   const CostTable &costs) {
  return Machine(timeline, costs).run();
}

} // namespace rota::pipe
