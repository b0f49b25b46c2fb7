// SPDX-License-Identifier: Apache-2.0
//
// Splits each backward into the input gradient, for which the previous chunk
// waits, and the weight gradient, for which no action waits, and moves the
// latter into bubbles, after the zero-bubble schedules of Qi et al., arXiv
// 2401.10241. Time is counted in unit slots.
#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/timeline/Simulator.h"
#include "passes/pipeline/timeline/ValueClock.h"

#include <deque>

namespace rota::pipe {
namespace {

class Splitter {
public:
  explicit Splitter(const Timeline &timeline)
      : source(timeline), shape(timeline.shape),
        result{timeline.shape, {}, timeline.delay}, values(shape) {
    result.ranks.resize(timeline.ranks.size());
    ranks.resize(timeline.ranks.size());
    std::optional<Simulation> simulation = simulate(timeline, CostTable());
    for (size_t rank = 0; rank < ranks.size(); ++rank)
      ranks[rank].limit = simulation->ranks[rank].peakLive;
  }

  Timeline run() {
    bool unfinished = true;
    for (int slot = 0; unfinished; ++slot) {
      unfinished = false;
      for (size_t rank = 0; rank < ranks.size(); ++rank)
        unfinished |= runSlot(rank, slot);
    }
    return std::move(result);
  }

private:
  struct RankState {
    size_t next = 0;
    int live = 0, limit = 0;
    std::deque<Action> weights; // W that are ready
  };

  const Timeline &source;
  const Shape &shape;
  Timeline result;
  std::vector<RankState> ranks;
  ValueClock values;

  /// Runs one action of `rank` if one is ready. True while actions are left.
  bool runSlot(int rank, int slot) {
    RankState &state = ranks[rank];
    const std::vector<Action> &row = source.ranks[rank];
    bool left = state.next < row.size();
    if (!left && state.weights.empty())
      return false;
    bool full = left && row[state.next].kind == ActionKind::Forward &&
                state.live == state.limit;
    if (left && !full &&
        values.isReady(row[state.next], source.delay - 1, slot)) {
      runNext(state, rank, slot);
    } else if (!state.weights.empty()) {
      // A pair stays one where no W comes between its halves.
      if (!result.ranks[rank].empty())
        result.ranks[rank].back().startsPair = false;
      result.ranks[rank].push_back(state.weights.front());
      state.weights.pop_front();
      --state.live;
    }
    return true;
  }

  void runNext(RankState &state, int rank, int slot) {
    Action action = source.ranks[rank][state.next++];
    if (action.kind == ActionKind::Forward) {
      ++state.live;
    } else {
      action.kind = ActionKind::BackwardInput;
      state.weights.push_back(
          {action.chunk, ActionKind::BackwardWeight, action.microbatch});
    }
    values.end(action, slot + 1);
    result.ranks[rank].push_back(action);
  }
};

} // namespace

Timeline splitBackward(const Timeline &timeline) {
  return Splitter(timeline).run();
}

} // namespace rota::pipe
