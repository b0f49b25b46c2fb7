// SPDX-License-Identifier: Apache-2.0
//
// Gathers of weights and reductions of gradients: tables, bounds, and errors of
// the verifier for damaged windows.
#include "passes/pipeline/timeline/WeightWindows.h"
#include "test/passes/pipeline/Damage.h"

#include <algorithm>
#include <set>

using namespace rota::pipe;

namespace {

constexpr GatherMode kModes[] = {GatherMode::PerIteration, GatherMode::Once,
                                 GatherMode::PerRepeat};

Timeline gathered(const Timeline &timeline, const GatherRequest &request = {}) {
  std::string error;
  auto result = gatherWeights(timeline, request, error);
  EXPECT_TRUE(result) << error;
  return result.value_or(Timeline());
}

std::string rowOf(const Timeline &timeline, int rank) {
  return printCsv({timeline.ranks[rank]});
}

int count(const Timeline &timeline, int rank, ActionKind kind) {
  const std::vector<Action> &row = timeline.ranks[rank];
  return std::count_if(row.begin(), row.end(), [&](const Action &action) {
    return action.kind == kind;
  });
}

// While repeat r runs, repeat r + 1 of the same rank is gathered.
TEST(WeightWindows, perRepeatIsASlidingWindow) {
  Timeline timeline = gathered(generated("circular", 4, 2, 8));
  EXPECT_EQ(rowOf(timeline, 3),
            "3UNSHARD,7UNSHARD,3F0,3F1,3F2,3F3,3F4,3F5,3F6,3F7,7F0,7F1,7F2,7F3,"
            "7F4,7F5,7F6,7F7,7B0,7B1,7B2,7B3,7B4,7B5,7B6,7B7,7RESHARD,"
            "7REDUCE_GRAD,3B0,3B1,3B2,3B3,3B4,3B5,3B6,3B7,3RESHARD,"
            "3REDUCE_GRAD\n");
  timeline = gathered(generated("circular", 2, 4, 2));
  EXPECT_EQ(rowOf(timeline, 0),
            "0UNSHARD,2UNSHARD,0F0,0F1,0RESHARD,4UNSHARD,2F0,2F1,2RESHARD,"
            "6UNSHARD,4F0,4F1,6F0,6F1,6B0,6B1,6RESHARD,2UNSHARD,6REDUCE_GRAD,"
            "4B0,4B1,4RESHARD,0UNSHARD,4REDUCE_GRAD,2B0,2B1,2RESHARD,"
            "2REDUCE_GRAD,0B0,0B1,0RESHARD,0REDUCE_GRAD\n");
  EXPECT_EQ(timeline.window, 2);
}

TEST(WeightWindows, aSingleWindowIsSerial) {
  Timeline timeline =
      gathered(generated("circular", 2, 2, 2), {GatherMode::PerRepeat, 1, {}});
  EXPECT_EQ(rowOf(timeline, 1),
            "1UNSHARD,1F0,1F1,1RESHARD,3UNSHARD,3F0,3F1,3B0,3B1,3RESHARD,"
            "1UNSHARD,3REDUCE_GRAD,1B0,1B1,1RESHARD,1REDUCE_GRAD\n");
}

TEST(WeightWindows, prefetchBoundsHowEarlyAGatherStarts) {
  Timeline timeline =
      gathered(generated("circular", 3, 2, 3), {GatherMode::PerRepeat, {}, 1});
  EXPECT_EQ(rowOf(timeline, 2),
            "2UNSHARD,2F0,2F1,5UNSHARD,2F2,5F0,5F1,5F2,5B0,5B1,5B2,5RESHARD,"
            "5REDUCE_GRAD,2B0,2B1,2B2,2RESHARD,2REDUCE_GRAD\n");
  timeline =
      gathered(generated("circular", 3, 2, 3), {GatherMode::PerRepeat, {}, 0});
  EXPECT_EQ(rowOf(timeline, 2).substr(0, 38),
            "2UNSHARD,2F0,2F1,2F2,5UNSHARD,5F0,5F1,");
}

TEST(WeightWindows, onceGathersFirst) {
  EXPECT_EQ(printCsv(gathered(generated("circular", 2, 2, 2),
                              {GatherMode::Once, {}, {}})
                         .ranks),
            "0UNSHARD,2UNSHARD,0F0,0F1,2F0,2F1,2B0,2B1,2RESHARD,2REDUCE_GRAD,"
            "0B0,0B1,0RESHARD,0REDUCE_GRAD\n"
            "1UNSHARD,3UNSHARD,1F0,1F1,3F0,3F1,3B0,3B1,3RESHARD,3REDUCE_GRAD,"
            "1B0,1B1,1RESHARD,1REDUCE_GRAD\n");
}

// The next chunk's gather starts one use ahead; a chunk has one window.
TEST(WeightWindows, perIterationGathersForEachUse) {
  EXPECT_EQ(printCsv(gathered(generated("1f1b", 2, 1, 2, 1, true),
                              {GatherMode::PerIteration, {}, {}})
                         .ranks),
            "0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1,0RESHARD,0UNSHARD,0I0,0RESHARD,"
            "0UNSHARD,0W0,0RESHARD,0UNSHARD,0REDUCE_GRAD,0I1,0RESHARD,"
            "0UNSHARD,0W1,0RESHARD,0REDUCE_GRAD\n"
            "1UNSHARD,1F0,1RESHARD,1UNSHARD,1I0,1RESHARD,1UNSHARD,1W0,1RESHARD,"
            "1UNSHARD,1REDUCE_GRAD,1F1,1RESHARD,1UNSHARD,1I1,1RESHARD,"
            "1UNSHARD,1W1,1RESHARD,1REDUCE_GRAD\n");
  EXPECT_EQ(rowOf(gathered(generated("gpipe", 1, 2, 1),
                           {GatherMode::PerIteration, {}, {}}),
                  0),
            "0UNSHARD,1UNSHARD,0F0,0RESHARD,1F0,1RESHARD,1UNSHARD,0UNSHARD,1B0,"
            "1RESHARD,1REDUCE_GRAD,0B0,0RESHARD,0REDUCE_GRAD\n");
}

// The sends of compute actions come first.
TEST(WeightWindows, standBesideMessages) {
  Timeline timeline = addCommunication(generated("circular", 2, 2, 2));
  EXPECT_EQ(rowOf(gathered(timeline), 0),
            "0UNSHARD,2UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,2RECV_F0,2F0,2SEND_F0,"
            "2RECV_F1,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1,"
            "2RESHARD,2REDUCE_GRAD,0RECV_B0,0B0,0RECV_B1,0B1,0RESHARD,"
            "0REDUCE_GRAD\n");
}

/// Fewest gathers that N windows allow, by search over what stays gathered.
int fewestGathers(const std::vector<int> &uses, size_t window) {
  std::map<std::set<int>, int> costs{{{}, 0}};
  auto keep = [](std::map<std::set<int>, int> &to, const std::set<int> &held,
                 int cost) {
    auto [entry, isNew] = to.insert({held, cost});
    entry->second = std::min(entry->second, cost);
  };
  for (int chunk : uses) {
    std::map<std::set<int>, int> next;
    for (const auto &[before, costBefore] : costs) {
      std::set<int> held = before;
      int cost = costBefore + held.insert(chunk).second;
      if (held.size() <= window) {
        keep(next, held, cost);
        continue;
      }
      for (int victim : held)
        if (victim != chunk) {
          std::set<int> left = held;
          left.erase(victim);
          keep(next, left, cost);
        }
    }
    costs = std::move(next);
  }
  int least = uses.size();
  for (const auto &[held, cost] : costs)
    least = std::min(least, cost);
  return least;
}

/// Checks the rules for any timeline with windows.
void checkBounds(const Timeline &timeline, GatherMode mode, int window,
                 const std::string &name) {
  const Shape &shape = timeline.shape;
  for (int rank = 0; rank < shape.stages; ++rank) {
    std::vector<int> uses;
    int gradients = 0;
    for (const Action &action : timeline.ranks[rank]) {
      if (isCompute(action.kind))
        uses.push_back(action.chunk);
      gradients += makesGradient(action.kind);
    }
    int gathers = count(timeline, rank, ActionKind::Unshard);
    int reductions = count(timeline, rank, ActionKind::ReduceGrad);
    EXPECT_EQ(count(timeline, rank, ActionKind::Reshard), gathers);
    if (mode == GatherMode::PerIteration) {
      EXPECT_EQ(gathers, int(uses.size())) << name;
      EXPECT_EQ(reductions, gradients) << name;
      continue;
    }
    EXPECT_EQ(reductions, shape.repeats) << name;
    if (mode == GatherMode::Once)
      EXPECT_EQ(gathers, shape.repeats) << name;
    else
      EXPECT_EQ(gathers, fewestGathers(uses, window)) << name;
  }
}

/// Random timelines and all schedules.
std::vector<Example> anyTimelines() {
  std::vector<Example> all = examples();
  std::mt19937 random(7);
  for (int trial = 0; trial < 120; ++trial) {
    Timeline timeline = randomTimeline(random);
    if (trial % 3 == 0)
      timeline = splitBackward(timeline);
    all.push_back({"random " + std::to_string(trial), std::move(timeline)});
  }
  return all;
}

TEST(WeightWindows, areValidAndGatherAsSeldomAsPossible) {
  for (const Example &example : anyTimelines())
    for (GatherMode mode : kModes)
      for (int window : {1, 2, 3, 4})
        for (std::optional<int> prefetch :
             {std::optional<int>(), std::optional<int>(2)}) {
          int repeats = example.timeline.shape.repeats;
          bool once = mode == GatherMode::Once;
          if ((mode == GatherMode::PerRepeat && repeats < 2) ||
              (once && (window > 1 || prefetch)) || repeats > 8)
            continue;
          std::string name = example.name + " " + ::rota::nameOf(mode) + " " +
                             std::to_string(window);
          GatherRequest request{mode, {}, prefetch};
          if (!once)
            request.window = window;
          Timeline timeline = gathered(example.timeline, request);
          ASSERT_EQ(timeline.window, once ? 0 : window);
          ASSERT_EQ(verified(timeline), "") << name;
          checkBounds(timeline, mode, window, name);
          // Before or after communication.
          ASSERT_EQ(verified(addCommunication(timeline)), "") << name;
          ASSERT_EQ(
              verified(gathered(addCommunication(example.timeline), request)),
              "")
              << name;
        }
}

TEST(WeightWindows, circularGathersTwiceAtMostWhateverTheMicrobatches) {
  for (auto [s, r] : {std::pair(2, 2), {2, 4}, {3, 3}, {4, 2}, {1, 5}, {8, 3}})
    for (int rounds : {1, 2, 5}) {
      Timeline timeline =
          gathered(generated("circular", s, r, std::max(s, 2) * rounds));
      for (int rank = 0; rank < s; ++rank) {
        EXPECT_EQ(count(timeline, rank, ActionKind::Unshard),
                  std::max(r, 2 * r - 2));
        EXPECT_EQ(count(timeline, rank, ActionKind::ReduceGrad), r);
      }
    }
}

// A gather that takes as long as a repeat less one use is hidden; only the
// first of a rank shows.
TEST(WeightWindows, circularHidesItsGathers) {
  for (auto [s, r, m] : {std::tuple(4, 4, 8), {2, 3, 4}, {3, 2, 6}}) {
    Timeline plain = addCommunication(generated("circular", s, r, m));
    CostTable costs;
    costs.unshard = m;
    costs.reduceGrad = m;
    auto simulation = simulate(gathered(plain), costs);
    for (const RankUsage &rank : simulation->ranks) {
      EXPECT_LE(rank.exposed.gathers, m);
      EXPECT_LE(rank.exposed.reductions, m);
      EXPECT_EQ(rank.peakWindows, 2);
      EXPECT_LE(rank.peakGradients, 2);
    }
    EXPECT_LE(simulation->makespan, simulate(plain, costs)->makespan + 2 * m);
  }
}

TEST(WeightWindows, keepWhatIsThere) {
  Timeline timeline = parsed("0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD\n");
  EXPECT_EQ(printCsv(gathered(timeline, {GatherMode::Once, {}, {}}).ranks),
            "0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD,0RESHARD\n");
}

TEST(WeightWindows, refuseNumbersInConflict) {
  auto refusal = [](int repeats, const GatherRequest &request) {
    std::string error;
    EXPECT_FALSE(
        gatherWeights(generated("gpipe", 2, repeats, 2), request, error));
    return error;
  };
  EXPECT_EQ(refusal(1, {GatherMode::PerRepeat, {}, {}}),
            "expected at least 2 repeats to gather weights 'per-repeat', got 1 "
            "('once' gathers as often)");
  EXPECT_EQ(refusal(2, {GatherMode::Once, 2, {}}),
            "a window is for gathering weights 'per-repeat' or "
            "'per-iteration', got 'once' and a window of 2");
  EXPECT_EQ(refusal(2, {GatherMode::Once, {}, 1}),
            "a prefetch distance is for gathering weights 'per-repeat' or "
            "'per-iteration', got 'once' and a distance of 1");
  EXPECT_EQ(refusal(2, {GatherMode::PerRepeat, 0, {}}),
            "expected a window of at least 1 chunk, got 0");
  EXPECT_EQ(refusal(2, {GatherMode::PerRepeat, {}, -1}),
            "expected a prefetch distance of at least 0 actions, got -1");
}

/// A timeline with windows.
Timeline anyGathered(std::mt19937 &random) {
  static const std::vector<Example> all = anyTimelines();
  while (true) {
    const Timeline &timeline = all[random() % all.size()].timeline;
    if (timeline.shape.repeats >= 2 && timeline.shape.repeats <= 8)
      return gathered(timeline);
  }
}

bool isUnshard(const Action &action) {
  return action.kind == ActionKind::Unshard;
}

TEST(WeightWindows, verifierRefusesARemovedUnshard) {
  expectRefused(1, 200, anyGathered, removed, isUnshard);
}

TEST(WeightWindows, verifierRefusesAnUnshardBehindItsFirstUse) {
  auto move = [](const DamagePlace &place) {
    Action action = place.remove();
    std::vector<Action> &row = place.row();
    auto use = std::find_if(
        row.begin() + place.position, row.end(), [&](const Action &other) {
          return isCompute(other.kind) && other.chunk == action.chunk;
        });
    row.insert(use + 1, action);
    return std::string("expected an open window of the chunk's weights");
  };
  expectRefused(2, 200, anyGathered, move, isUnshard);
}

// Before the window that it takes is free.
TEST(WeightWindows, verifierRefusesAnUnshardBeforeItsWindowIsFree) {
  auto move = [](const DamagePlace &place) -> std::optional<std::string> {
    if (place.position == 0)
      return std::nullopt;
    Action &before = place.row()[place.position - 1];
    if (before.kind != ActionKind::Reshard)
      return std::nullopt;
    std::swap(place.action(), before);
    return "";
  };
  expectRefused(4, 50, anyGathered, move, isUnshard);
}

TEST(WeightWindows, verifierRefusesAnotherChunksUnshard) {
  auto change = [](const DamagePlace &place) {
    int chunks = place.timeline.shape.chunks();
    int &chunk = place.action().chunk;
    chunk = (chunk + 1 + int(place.below(chunks - 1))) % chunks;
    return std::string();
  };
  expectRefused(3, 200, anyGathered, change, isUnshard);
}

// A window that slides by the iteration and not by each stage's repeat (as that
// of MaxText e591f30): in repeat r, the stages from the third on still have the
// weights of repeat r - 1.
TEST(WeightWindows, verifierRefusesTheWindowOfTheRepeatBefore) {
  Timeline timeline =
      gathered(generated("circular", 4, 2, 8), {GatherMode::PerRepeat, 1, {}});
  // Stage s is s iterations behind stage 0, and the ids are taken one ahead.
  for (int rank = 2; rank < 4; ++rank) {
    std::vector<Action> &row = timeline.ranks[rank];
    int next = rank + 4;
    auto at = [&](ActionKind kind, int m) {
      return std::find(row.begin(), row.end(), Action{next, kind, m});
    };
    auto slide =
        std::find(row.begin(), row.end(), Action{rank, ActionKind::Reshard, 0});
    std::rotate(slide, slide + 2, at(ActionKind::Forward, rank - 2) + 1);
  }
  EXPECT_EQ(verified(timeline),
            "rank 2, position 9, 6F0: expected an open window of the chunk's "
            "weights\n"
            "rank 3, position 9, 7F0: expected an open window of the chunk's "
            "weights\n"
            "rank 3, position 10, 7F1: expected an open window of the chunk's "
            "weights\n");
}

} // namespace
