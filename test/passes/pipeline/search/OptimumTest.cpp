// SPDX-License-Identifier: Apache-2.0
//
// The search against all timelines of tiny pipelines.
#include "passes/pipeline/search/Search.h"
#include "test/passes/pipeline/Examples.h"

#include <set>

using namespace rota::pipe;

namespace {

/// Walks through all states that a pipeline can be in, in steps of one unit of
/// time. Costs are whole numbers above 0, and messages take no time.
class Exhaustive {
public:
  explicit Exhaustive(const ScheduleRequest &request)
      : request(request), shape(request.shape) {}

  /// The least makespan of all timelines that keep the bound.
  int optimum() {
    std::set<State> met, now = {initial()};
    for (int time = 0;; ++time) {
      std::set<State> next;
      for (const State &state : now) {
        if (isDone(state))
          return time;
        startOn(0, state, next);
      }
      now.clear();
      for (const State &state : next)
        if (met.insert(state).second)
          now.insert(state);
    }
  }

private:
  enum Kind { F, I, W, kKinds }; // I: or B
  struct State {
    std::vector<signed char> started;           // by chunk and kind
    std::vector<signed char> running, timeLeft; // by rank: what, or -1
    auto operator<=>(const State &) const = default;
  };

  const ScheduleRequest &request;
  const Shape &shape;

  State initial() const {
    return {std::vector<signed char>(kKinds * shape.chunks()),
            std::vector<signed char>(shape.stages, -1),
            std::vector<signed char>(shape.stages)};
  }

  bool isDone(const State &state) const {
    for (int i = 0; i < kKinds * shape.chunks(); ++i)
      if (ended(state, i) <
          (i % kKinds == W && !request.splitBackward ? 0 : shape.microbatches))
        return false;
    return true;
  }

  int ended(const State &state, int what) const {
    bool runs = state.running[shape.rankOf(what / kKinds)] == what;
    return state.started[what] - runs;
  }

  bool canStart(const State &state, int chunk, int kind) const {
    int what = chunk * kKinds + kind, microbatch = state.started[what];
    if (microbatch == shape.microbatches)
      return false;
    if (kind == W)
      return request.splitBackward && ended(state, what - 1) > microbatch;
    if (kind == F)
      return (chunk == 0 || ended(state, what - kKinds) > microbatch) &&
             hasRoom(state, shape.rankOf(chunk));
    return ended(state,
                 chunk + 1 == shape.chunks() ? what - 1 : what + kKinds) >
           microbatch;
  }

  bool hasRoom(const State &state, int rank) const {
    int live = 0;
    for (int row = 0; row < shape.repeats; ++row) {
      int what = shape.chunkOf(rank, row) * kKinds;
      live += state.started[what] -
              ended(state, what + (request.splitBackward ? W : I));
    }
    return request.activations == 0 || live < request.activations;
  }

  int costOf(int what) const {
    constexpr ActionKind split[] = {ActionKind::Forward,
                                    ActionKind::BackwardInput,
                                    ActionKind::BackwardWeight};
    ActionKind kind = what % kKinds == I && !request.splitBackward
                          ? ActionKind::Backward
                          : split[what % kKinds];
    return int(request.costs.of({what / kKinds, kind, 0}));
  }

  /// Adds the states one unit later, for all that ranks from `rank` on can
  /// start, or leave.
  void startOn(int rank, const State &state, std::set<State> &next) const {
    if (rank == shape.stages) {
      next.insert(later(state));
      return;
    }
    startOn(rank + 1, state, next);
    if (state.running[rank] >= 0)
      return;
    for (int row = 0; row < shape.repeats; ++row)
      for (int kind : {F, I, W}) {
        int chunk = shape.chunkOf(rank, row), what = chunk * kKinds + kind;
        if (!canStart(state, chunk, kind))
          continue;
        State started = state;
        ++started.started[what];
        started.running[rank] = static_cast<signed char>(what);
        started.timeLeft[rank] = static_cast<signed char>(costOf(what));
        startOn(rank + 1, started, next);
      }
  }

  State later(State state) const {
    for (int rank = 0; rank < shape.stages; ++rank)
      if (state.running[rank] >= 0 && --state.timeLeft[rank] == 0)
        state.running[rank] = -1;
    return state;
  }
};

void expectOptimum(const ScheduleRequest &request) {
  std::string error;
  std::optional<Timeline> timeline = makeTimeline("auto", request, error);
  ASSERT_TRUE(timeline) << error;
  EXPECT_DOUBLE_EQ(simulate(*timeline, request.costs)->makespan,
                   Exhaustive(request).optimum())
      << request.shape.repeats << " chunks, " << request.shape.microbatches
      << " microbatches, bound " << request.activations << ", split "
      << request.splitBackward << ", placement "
      << int(request.shape.placement);
}

TEST(Optimum, isFoundOnTwoRanks) {
  for (bool split : {false, true})
    for (int microbatches : {2, 3})
      for (int bound : {0, 1, 2}) {
        ScheduleRequest request{{2, 1, microbatches}, 1, split, bound};
        expectOptimum(request);
        request.costs.backward = 2;
        request.costs.backwardWeight = 2;
        expectOptimum(request);
      }
}

TEST(Optimum, isFoundWithTwoChunksOnEach) {
  for (bool split : {false, true})
    for (Placement placement : {Placement::Loop, Placement::V})
      for (auto [microbatches, bound] :
           {std::pair(2, 0), {2, 2}, {2, 3}, {3, 2}, {3, 4}})
        expectOptimum({{2, 2, microbatches, placement}, 1, split, bound});
}

TEST(Optimum, isFoundWithChunksOfDifferentCost) {
  for (bool split : {false, true})
    for (int bound : {0, 2, 3}) {
      ScheduleRequest request{{2, 1, 3}, 1, split, bound};
      request.costs.chunks = {{3, 6, 3, 3}, {1, 2, 1, 1}};
      expectOptimum(request);
      request.costs.chunks = {{1, 2, 1, 1}, {2, 4, 2, 2}};
      expectOptimum(request);
      request.shape = {2, 2, 2};
      request.costs.chunks = {
          {2, 4, 2, 2}, {1, 2, 1, 1}, {1, 2, 1, 1}, {3, 6, 3, 3}};
      if (bound != 3 || !split)
        expectOptimum(request);
    }
}

TEST(Optimum, isFoundOnThreeRanks) {
  for (int bound : {0, 1, 2}) {
    expectOptimum({{3, 1, 3}, 1, false, bound});
    expectOptimum({{3, 1, 2}, 1, true, bound});
  }
}

} // namespace
