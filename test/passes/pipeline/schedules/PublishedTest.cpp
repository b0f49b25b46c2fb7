// SPDX-License-Identifier: Apache-2.0
//
// The schedules of papers at many shapes: valid with and without messages, and
// with the idle time and the activations that their papers give for F = I = W.
#include "passes/pipeline/timeline/GradientOrder.h"
#include "test/passes/pipeline/Examples.h"

#include <functional>
#include <set>

using namespace rota::pipe;

namespace {

/// The worst rank's numbers for p stages of R chunks.
struct Published {
  const char *name;
  int repeats; // R
  /// From this number of microbatches on, the numbers are these.
  std::function<int(int p)> enough;
  std::function<int(int p)> idle; // slots between first and last action
  std::function<int(int p)> peak; // activations of a chunk
};

int oneLess(int p) { return p - 1; }
int none(int) { return 0; }
int thrice(int p) { return 3 * (p - 1); }

const std::vector<Published> &publishedSchedules() {
  auto stages = [](int p) { return p; };
  auto twice = [](int p) { return 2 * p; };
  static const std::vector<Published> all = {
      {"1f1b", 1, stages, thrice, stages},
      {"eager-1f1b", 1, twice, thrice, [](int p) { return 2 * p - 1; }},
      {"interleaved-1f1b", 2, twice, thrice, [](int p) { return 3 * p - 1; }},
      {"interleaved-1f1b", 3, twice, thrice, [](int p) { return 4 * p - 1; }},
      {"interleaved-overlap", 3, twice, thrice, [](int p) { return 4 * p; }},
      {"zb1p", 1, stages, oneLess, stages},
      {"zb2p", 1, [](int p) { return 2 * p - 1; }, none,
       [](int p) { return 2 * p - 1; }},
      {"interleaved-zero-bubble", 1, stages, oneLess, stages},
      {"interleaved-zero-bubble", 2, stages, oneLess,
       [](int p) { return 2 * p; }},
      {"interleaved-zero-bubble", 3, stages, oneLess,
       [](int p) { return 3 * p; }},
      {"zbv", 2, [](int p) { return 2 * p - 1; }, none,
       [](int p) { return 2 * p; }},
      {"dualpipev", 2, [](int p) { return 2 * p; }, oneLess,
       [](int p) { return 2 * p + 1; }},
      {"v-half", 2, [](int p) { return p + 1; },
       [](int p) { return 3 * p - 4 + p % 2; }, [](int p) { return p + 3; }},
      {"v-min", 2, stages, [](int p) { return 4 * p - 5 + (p % 3 == 0); },
       [](int p) { return 2 * ((p + 4) / 3); }},
  };
  return all;
}

/// Numbers of microbatches from 1 to 8 * p with which the schedule exists.
std::set<int> microbatchCounts(const char *name, int p, int repeats) {
  std::set<int> counts;
  for (int m : {1, p, p + 1, 2 * p - 1, 2 * p, 3 * p, 3 * p + 1, 8 * p}) {
    std::string error;
    Shape shape = demandedShape(name, {p, repeats, m});
    if (makeTimeline(name, {shape}, error))
      counts.insert(m);
  }
  return counts;
}

std::string title(const char *name, const Shape &shape) {
  return std::string(name) + " " + std::to_string(shape.stages) + "x" +
         std::to_string(shape.repeats) + "x" +
         std::to_string(shape.microbatches);
}

TEST(Published, haveTheIdleTimeAndActivationsOfTheirPapers) {
  for (const Published &schedule : publishedSchedules())
    for (int p : {2, 3, 4, 8, 16})
      for (int m : microbatchCounts(schedule.name, p, schedule.repeats)) {
        Shape shape = demandedShape(schedule.name, {p, schedule.repeats, m});
        std::string error;
        CostTable costs;
        costs.backward = 2; // what I and W cost
        auto simulation =
            simulate(*makeTimeline(schedule.name, {shape}, error), costs);
        ASSERT_TRUE(simulation) << title(schedule.name, shape);
        double idle = 0;
        int peak = 0;
        for (const RankUsage &rank : simulation->ranks) {
          idle = std::max(idle, rank.idle);
          peak = std::max(peak, rank.peakLive);
        }
        EXPECT_LE(peak, schedule.peak(p)) << title(schedule.name, shape);
        if (m < schedule.enough(p))
          continue;
        EXPECT_EQ(idle, schedule.idle(p)) << title(schedule.name, shape);
        EXPECT_EQ(peak, schedule.peak(p)) << title(schedule.name, shape);
      }
}

// Few microbatches, or layers outside of the pipeline, may leave ranks idle,
// and must not leave them waiting for ever for one another's messages.
TEST(Published, areValidWithAndWithoutMessages) {
  std::set<std::string> seen;
  for (const Schedule &schedule : allSchedules())
    for (int p : {2, 3, 4, 8, 16})
      for (int repeats : {1, 2, 3}) {
        // A schedule with a number of its own comes once.
        if (demandedShape(schedule.name, {p, repeats, 1}).repeats != repeats)
          continue;
        for (int m : microbatchCounts(schedule.name, p, repeats)) {
          Shape shape = demandedShape(schedule.name, {p, repeats, m});
          std::string error;
          Timeline timeline = *makeTimeline(schedule.name, {shape}, error);
          EXPECT_EQ(verified(timeline), "") << title(schedule.name, shape);
          EXPECT_EQ(verified(addCommunication(timeline)), "")
              << title(schedule.name, shape);
          EXPECT_EQ(reorderedGradients(timeline), "")
              << title(schedule.name, shape);
          if (m % p != 0)
            continue;
          shape.hasUnpipelined = true;
          Timeline whole = *makeTimeline(schedule.name, {shape}, error);
          EXPECT_EQ(verified(addCommunication(whole)), "")
              << title(schedule.name, shape) << " with unpipelined layers";
          seen.insert(schedule.name);
        }
      }
  EXPECT_EQ(seen.size(), allSchedules().size());
}

// One more forward in each warm-up is one more activation on each rank, and as
// much work.
TEST(Published, overlapHoldsOneMoreActivation) {
  for (auto [p, r, m] : {std::tuple(4, 2, 8), {3, 3, 9}, {8, 2, 32}}) {
    auto plain = simulate(generated("interleaved-1f1b", p, r, m), {});
    auto overlap = simulate(generated("interleaved-overlap", p, r, m), {});
    for (int rank = 0; rank < p; ++rank)
      EXPECT_EQ(overlap->ranks[rank].peakLive, plain->ranks[rank].peakLive + 1);
    EXPECT_EQ(overlap->makespan, plain->makespan);
  }
}

TEST(Published, eagerHidesTheLatencyOfMessages) {
  CostTable costs;
  costs.backward = 2;
  costs.send = 1;
  auto plain = simulate(generated("1f1b", 4, 1, 16), costs);
  auto eager = simulate(generated("eager-1f1b", 4, 1, 16), costs);
  EXPECT_LT(eager->makespan, plain->makespan);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(plain->ranks[rank].peakLive, 4 - rank);
    EXPECT_EQ(eager->ranks[rank].peakLive, 2 * (4 - rank) - 1);
  }
}

// The published order begins so on rank 0, of 4, with 10 microbatches.
TEST(Published, dualPipeVBeginsAsPublished) {
  Timeline timeline = generated("dualpipev", 4, 2, 10, 1, false, Placement::V);
  std::string expected = "0F0,0F1,0F2,0F3,0F4,0F5,0F6,7F0,7I0,7W0,7F1,7I1,7W1,"
                         "7F2,7I2,7W2,7F3,0F7,7I3,7W3,7F4,0I0,0W0,";
  EXPECT_EQ(printCsv(timeline.ranks).substr(0, expected.size()), expected);
}

} // namespace
