// SPDX-License-Identifier: Apache-2.0
//
// A list scheduler. The unpipelined layers fill bubbles. 2 stages, 1 repeat, 4
// microbatches, GPipe (chunk 2 is the unpipelined one):
//
//   rank 0  0F0 0F1 2F0 2B0 0F2 0F3 2F2 2B2 .   .   0B0 0B1 0B2 0B3
//   rank 1  .   1F0 1F1 2F1 2B1 1F2 1F3 2F3 2B3 1B0 1B1 1B2 1B3 .
#include "passes/pipeline/timeline/UnpipelinedLayers.h"

#include "passes/pipeline/timeline/ValueClock.h"

#include <deque>

namespace rota::pipe {
namespace {

class Scheduler {
public:
  /// Stages take their microbatches of the unpipelined chunk in ascending
  /// order, or in the order in which the activations come.
  Scheduler(const Timeline &timeline, bool ascending)
      : source(timeline), shape(timeline.shape),
        unpipelined(shape.chunks() - 1), result(timeline), values(shape),
        ranks(timeline.ranks.size()), ascending(ascending),
        isSplit(shape.microbatches) {
    for (int m = 0; ascending && m < shape.microbatches; ++m)
      ranks[shape.rankOf(unpipelined, m)].ready.push_back(m);
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      result.ranks[rank].clear();
      for (const Action &action : timeline.ranks[rank])
        if (action.kind == ActionKind::BackwardInput &&
            action.chunk == unpipelined - 1)
          isSplit[action.microbatch] = true;
    }
  }

  /// Nothing when the rows do not complete.
  std::optional<Timeline> run() {
    int idle = 0; // consecutive slots in which all ranks are idle
    for (int slot = 0; idle <= source.delay; ++slot) {
      bool moved = false;
      for (size_t rank = 0; rank < ranks.size(); ++rank)
        moved |= runSlot(int(rank), slot);
      idle = moved ? 0 : idle + 1;
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      if (ranks[rank].next < source.ranks[rank].size())
        return std::nullopt;
    return std::move(result);
  }

private:
  struct RankState {
    size_t next = 0;       // in its row
    int busy = 0;          // until this slot
    std::deque<int> ready; // next microbatches of the unpipelined chunk
  };

  const Timeline &source;
  const Shape &shape;
  int unpipelined; // number of the unpipelined chunk
  Timeline result;
  ValueClock values;
  std::vector<RankState> ranks;
  bool ascending;
  std::vector<bool> isSplit; // backwards of the last pipelined chunk

  bool isReady(const Action &action, int slot) const {
    return values.isReady(action, source.delay - 1, slot);
  }

  /// Appends an action that ends `slots` after its rank is free.
  void append(int rank, const Action &action, int slots = 1) {
    result.ranks[rank].push_back(action);
    ranks[rank].busy += 1;
    values.end(action, ranks[rank].busy + slots - 1);
    int m = action.microbatch;
    if (!ascending && action.kind == ActionKind::Forward &&
        action.chunk == unpipelined - 1)
      ranks[shape.rankOf(unpipelined, m)].ready.push_back(m);
  }

  /// Starts an action of `rank` if the rank is free and one is ready. True
  /// while the rank is busy.
  bool runSlot(int rank, int slot) {
    RankState &state = ranks[rank];
    if (state.busy > slot)
      return true;
    state.busy = slot;
    if (!state.ready.empty() &&
        isReady({unpipelined, ActionKind::Forward, state.ready.front()},
                slot)) {
      int m = state.ready.front();
      state.ready.pop_front();
      append(rank, {unpipelined, ActionKind::Forward, m});
      if (isSplit[m]) {
        append(rank, {unpipelined, ActionKind::BackwardInput, m});
        append(rank, {unpipelined, ActionKind::BackwardWeight, m});
      } else {
        append(rank, {unpipelined, ActionKind::Backward, m});
      }
    } else {
      runNext(rank, slot);
    }
    return state.busy > slot;
  }

  /// Starts the next action of the row, or pair, if it is ready. Both halves of
  /// a pair end with it.
  void runNext(int rank, int slot) {
    size_t &next = ranks[rank].next;
    const std::vector<Action> &row = source.ranks[rank];
    if (next == row.size() || !isReady(row[next], slot))
      return;
    if (!row[next].startsPair)
      return append(rank, row[next++]);
    if (next + 1 == row.size() || !isReady(row[next + 1], slot))
      return;
    append(rank, row[next++], 2);
    append(rank, row[next++]);
  }
};

} // namespace

std::optional<Timeline> addUnpipelinedLayers(const Timeline &timeline) {
  std::optional<Timeline> result =
      Scheduler(timeline, /*ascending=*/true).run();
  return result ? result : Scheduler(timeline, /*ascending=*/false).run();
}

std::optional<Timeline> withUnpipelinedLayers(Timeline timeline,
                                              std::string &error) {
  timeline.shape.hasUnpipelined = true;
  error = checkShape(timeline.shape);
  if (!error.empty())
    return std::nullopt;
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    for (const Action &action : timeline.ranks[rank])
      if (!isCompute(action.kind)) {
        error =
            "expected F, B, I and W alone in a timeline to which the layers "
            "outside of the pipeline are added, got " +
            toString(action) + " on rank " + std::to_string(rank);
        return std::nullopt;
      }
  std::optional<Timeline> result = addUnpipelinedLayers(timeline);
  if (!result)
    error = "expected a timeline that completes, got one that does not";
  return result;
}

} // namespace rota::pipe
