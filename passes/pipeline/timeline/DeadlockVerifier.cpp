// SPDX-License-Identifier: Apache-2.0
//
// Executes the timeline without time. Ranks with first-in-first-out channels
// and bounded buffers form a Kahn network: if one order of execution ends, all
// orders end, so one execution proves that there is no deadlock.
#include "passes/pipeline/timeline/DeadlockVerifier.h"

#include <map>

namespace rota::pipe {
namespace {

/// Ends of a message: the chunks that make and read its value.
struct Value {
  int maker, reader, microbatch;
  bool forward;
  bool operator==(const Value &) const = default;
  auto operator<=>(const Value &) const = default;
};

std::optional<Value> transferred(const Action &action) {
  int c = action.chunk, m = action.microbatch;
  switch (action.kind) {
  case ActionKind::SendForward:
    return Value{c, c + 1, m, true};
  case ActionKind::RecvForward:
    return Value{c - 1, c, m, true};
  case ActionKind::SendBackward:
    return Value{c, c - 1, m, false};
  case ActionKind::RecvBackward:
    return Value{c + 1, c, m, false};
  default:
    return std::nullopt;
  }
}

struct Entry {
  int position;
  Value value;
};

class Network {
public:
  explicit Network(const Timeline &timeline)
      : timeline(timeline), shape(timeline.shape),
        bounded(hasCommunication(timeline)), next(timeline.ranks.size()),
        outgoing(timeline.ranks.size() * 2) {
    size_t values = 2 * size_t(shape.chunks()) * shape.microbatches;
    halves.resize(values);
    made.resize(values);
  }

  std::vector<Violation> run() {
    matchChannels();
    if (!violations.empty())
      return std::move(violations);
    // Values travel up and down the ranks, so sweeps alternate in direction.
    bool moved = true;
    for (bool up = true; moved; up = !up) {
      moved = false;
      for (size_t i = 0; i < next.size(); ++i)
        moved |= advance(up ? i : next.size() - 1 - i);
    }
    for (size_t rank = 0; rank < next.size(); ++rank)
      if (next[rank] < timeline.ranks[rank].size()) {
        size_t position =
            isBlocked(rank, next[rank]) ? next[rank] : next[rank] + 1;
        violations.push_back(
            {int(rank), int(position), toString(timeline.ranks[rank][position]),
             "deadlock: waits for ever for " + blockedBy(rank, position)});
      }
    return std::move(violations);
  }

private:
  /// Executes the rank's next actions while they are ready. False when none is.
  bool advance(int rank) {
    size_t before = next[rank];
    while (next[rank] < timeline.ranks[rank].size() && !isBlocked(rank)) {
      if (timeline.ranks[rank][next[rank]].startsPair)
        execute(rank);
      execute(rank);
    }
    return next[rank] != before;
  }

  const Timeline &timeline;
  const Shape &shape;
  bool bounded;
  std::vector<Violation> violations;
  std::vector<size_t> next; // per rank
  // The values that have been made, per rank and direction, in order.
  std::vector<std::vector<Value>> outgoing;
  // Per value: the number of halves of its transfer, SEND and RECV, that have
  // been executed, and whether the value has been made.
  std::vector<char> halves, made;

  size_t indexOf(const Value &value) const {
    size_t row = size_t(value.forward) * shape.chunks() + value.maker;
    return row * shape.microbatches + value.microbatch;
  }

  /// The k-th send of each channel must carry the value of its k-th receive.
  void matchChannels() {
    using Key = std::tuple<int, int, bool>; // source, destination, direction
    std::map<Key, std::vector<Entry>> sends, receives;
    for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
      for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
        const Action &action = timeline.ranks[rank][i];
        std::optional<Value> value = transferred(action);
        if (!value)
          continue;
        Key key{shape.rankOf(value->maker, value->microbatch),
                shape.rankOf(value->reader, value->microbatch), value->forward};
        (isSend(action.kind) ? sends : receives)[key].push_back(
            {int(i), *value});
      }
    for (const auto &[key, sent] : sends) {
      const std::vector<Entry> &posted = receives[key];
      for (size_t k = 0; k < sent.size(); ++k)
        if (!(sent[k].value == posted[k].value)) {
          auto [source, destination, forward] = key;
          const auto &row = timeline.ranks[source];
          const auto &peerRow = timeline.ranks[destination];
          violations.push_back(
              {source, sent[k].position, toString(row[sent[k].position]),
               "send " + std::to_string(k) + " to rank " +
                   std::to_string(destination) + " meets " +
                   toString(peerRow[posted[k].position]) + " at position " +
                   std::to_string(posted[k].position) +
                   ": expected sends and receives in one order"});
          break;
        }
    }
  }

  /// The value that a compute action reads.
  std::optional<Value> reads(const Action &action) const {
    int from = shape.producerOf(action);
    if (!isCompute(action.kind) || from == kNoChunk)
      return std::nullopt;
    return Value{from, action.chunk, action.microbatch, isForward(action.kind)};
  }

  /// The value that a compute action makes for another chunk.
  std::optional<Value> makes(const Action &action) const {
    int to = shape.consumerOf(action);
    if (!isCompute(action.kind) || to == kNoChunk)
      return std::nullopt;
    return Value{action.chunk, to, action.microbatch, isForward(action.kind)};
  }

  bool crosses(const Value &value) const {
    return shape.rankOf(value.maker, value.microbatch) !=
           shape.rankOf(value.reader, value.microbatch);
  }

  static std::string name(const Value &value) {
    return std::string(value.forward ? "the activation" : "the gradient") +
           " of microbatch " + std::to_string(value.microbatch) +
           " from chunk " + std::to_string(value.maker) + " to chunk " +
           std::to_string(value.reader);
  }

  bool isThere(const Value &value) const {
    return crosses(value) && bounded ? halves[indexOf(value)] == 2
                                     : made[indexOf(value)] != 0;
  }

  /// The value that occupies the buffer which the action needs; null when the
  /// buffer is free. The halves of a pair need buffers of two directions.
  const Value *bufferedValue(int rank, size_t position) const {
    const Action &action = timeline.ranks[rank][position];
    std::optional<Value> result = makes(action);
    if (!result || !bounded || !crosses(*result))
      return nullptr;
    const std::vector<Value> &out = outgoing[rank * 2 + result->forward];
    if (out.size() < kOutgoingBuffers)
      return nullptr;
    const Value &occupant = out[out.size() - kOutgoingBuffers];
    return isThere(occupant) ? nullptr : &occupant;
  }

  bool isBlocked(int rank, size_t position) const {
    std::optional<Value> value = reads(timeline.ranks[rank][position]);
    return (value && !isThere(*value)) || bufferedValue(rank, position);
  }

  /// Whether the rank's next action is, or one of the halves of its next pair.
  bool isBlocked(int rank) const {
    size_t position = next[rank];
    return isBlocked(rank, position) ||
           (timeline.ranks[rank][position].startsPair &&
            isBlocked(rank, position + 1));
  }

  /// The value or buffer for which the action, which is blocked, waits.
  std::string blockedBy(int rank, size_t position) const {
    std::optional<Value> value = reads(timeline.ranks[rank][position]);
    if (value && !isThere(*value))
      return name(*value);
    const Value &occupant = *bufferedValue(rank, position);
    return "the buffer that holds " + name(occupant) + ", which has not been " +
           (halves[indexOf(occupant)] == 1 ? "both sent and received"
                                           : "sent or received");
  }

  void execute(int rank) {
    const Action &action = timeline.ranks[rank][next[rank]++];
    if (std::optional<Value> value = transferred(action))
      ++halves[indexOf(*value)];
    if (std::optional<Value> result = makes(action)) {
      made[indexOf(*result)] = true;
      if (crosses(*result))
        outgoing[rank * 2 + result->forward].push_back(*result);
    }
  }
};

} // namespace

std::vector<Violation> verifyProgress(const Timeline &timeline) {
  return Network(timeline).run();
}

} // namespace rota::pipe
