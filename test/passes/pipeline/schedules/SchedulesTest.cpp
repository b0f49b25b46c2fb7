// SPDX-License-Identifier: Apache-2.0
//
// The timelines that generators write, and the sizes that they refuse.
#include "test/passes/pipeline/Examples.h"

using namespace rota::pipe;

namespace {

TEST(Schedules, areValid) {
  for (const Example &example : examples()) {
    EXPECT_EQ(verified(example.timeline), "") << example.name;
    EXPECT_FALSE(hasCommunication(example.timeline)) << example.name;
  }
}

TEST(Schedules, takeBackwardsInAscendingOrder) {
  for (const Example &example : examples()) {
    std::vector<int> next(example.timeline.shape.chunks());
    for (const std::vector<Action> &row : example.timeline.ranks)
      for (const Action &action : row)
        if (action.kind == ActionKind::Backward ||
            action.kind == ActionKind::BackwardWeight)
          EXPECT_EQ(action.microbatch, next[action.chunk]++) << example.name;
  }
}

TEST(Schedules, splitBackwardHoldsNoMoreAndTakesNoLonger) {
  CostTable costs;
  costs.backward = 2; // so that B costs what I and W cost
  for (const char *name : {"gpipe", "circular", "1f1b", "interleaved-1f1b",
                           "eager-1f1b", "interleaved-overlap"}) {
    int repeats = demandedShape(name, {4, 2, 8}).repeats;
    auto whole = simulate(generated(name, 4, repeats, 8), costs);
    auto split = simulate(generated(name, 4, repeats, 8, 1, true), costs);
    EXPECT_LE(split->makespan, whole->makespan) << name;
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_LE(split->ranks[rank].peakLive, whole->ranks[rank].peakLive)
          << name;
  }
}

TEST(Schedules, splitBackwardLeavesSplitOnesAlone) {
  EXPECT_EQ(generated("zb1p", 4, 1, 8, 1, true).ranks,
            generated("zb1p", 4, 1, 8).ranks);
}

TEST(Schedules, demandShapes) {
  EXPECT_EQ(demandedShape("zbv", {4, 1, 8}), (Shape{4, 2, 8, Placement::V}));
  EXPECT_EQ(demandedShape("zb1p", {4, 3, 8}), (Shape{4, 1, 8}));
  EXPECT_EQ(demandedShape("zb1p", {1, 3, 8}), (Shape{1, 3, 8}));
  EXPECT_EQ(demandedShape("gpipe", {4, 3, 8, Placement::V}),
            (Shape{4, 3, 8, Placement::V}));
  EXPECT_EQ(demandedShape("mine.csv", {4, 3, 8}), (Shape{4, 3, 8}));
}

// The order in PyTorch's documentation of Interleaved1F1B, 2 ranks of 2 chunks.
TEST(Schedules, interleavedOrder) {
  EXPECT_EQ(printCsv(generated("interleaved-1f1b", 2, 2, 4).ranks),
            "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3"
            "\n");
}

struct Refusal {
  const char *name;
  Shape shape;
  int delay;
  std::string error;
};

std::vector<Refusal> refusalsOfWholeBackwards() {
  return {
      {"circular",
       {4, 2, 6},
       1,
       "expected microbatches to be a multiple of stages for the circular "
       "schedule, got 6 and 4"},
      {"circular",
       {4, 2, 4},
       2,
       "expected at least 2 * stages microbatches for delayed forwarding, got "
       "4 microbatches and 4 stages"},
      {"circular",
       {4, 2, 8, Placement::V},
       1,
       "the circular schedule needs the placement 'loop', got 'v' (in a v the "
       "last rank begins odd repeats, so that repeats do not follow one "
       "another "
       "without idle iterations; gpipe takes v)"},
      {"circular", {4, 2, 8}, 3, "expected a delay of 1 or 2, got 3"},
      {"circular",
       {4, 0, 8},
       1,
       "expected a positive number of repeats, got 0"},
      {"1f1b",
       {4, 2, 8},
       1,
       "the 1f1b schedule needs 1 repeat, got 2 repeats on 4 stages "
       "(interleaved-1f1b takes several)"},
      {"interleaved-1f1b",
       {3, 2, 8},
       1,
       "expected microbatches to be a multiple of stages for the "
       "interleaved-1f1b schedule, got 8 and 3"},
      {"interleaved-1f1b",
       {2, 2, 4, Placement::V},
       1,
       "the interleaved-1f1b schedule needs the placement 'loop', got 'v' (its "
       "warm-up counts on a microbatch that goes from the last rank to the "
       "first; zbv is one for v)"},
      {"looped-bfs",
       {2, 2, 4, Placement::V},
       1,
       "the looped-bfs schedule needs the placement 'loop', got 'v' (gpipe "
       "takes v)"},
      {"gpipe",
       {2, 2, 8},
       2,
       "expected a schedule with a delay of 2 (circular), got 'gpipe'"},
      {"pipe",
       {2, 2, 8},
       1,
       "unknown schedule 'pipe': expected one of " + scheduleNames() +
           ", or a file that ends in .csv"},
  };
}

std::vector<Refusal> refusalsOfSplitBackwards() {
  return {
      {"zb1p",
       {4, 2, 8},
       1,
       "the zb1p schedule needs 1 repeat, got 2 repeats on 4 stages "
       "(interleaved-zero-bubble takes several)"},
      {"zbv",
       {4, 2, 8},
       1,
       "the zbv schedule needs the placement 'v', got 'loop'"},
      {"v-half",
       {4, 3, 8, Placement::V},
       1,
       "the v-half schedule needs 2 repeats, got 3 repeats on 4 stages"},
      {"v-min",
       {1, 1, 8},
       1,
       "the v-min schedule needs 2 repeats, got 1 repeat on 1 stage"},
      {"interleaved-zero-bubble",
       {4, 2, 6},
       1,
       "expected microbatches to be a multiple of stages for the "
       "interleaved-zero-bubble schedule, got 6 and 4"},
      {"dualpipev",
       {4, 2, 7, Placement::V},
       1,
       "expected at least 2 * stages microbatches for the dualpipev schedule, "
       "got 7 microbatches and 4 stages"},
  };
}

TEST(Schedules, refuseWhatDoesNotFit) {
  auto refusals = refusalsOfWholeBackwards();
  std::ranges::move(refusalsOfSplitBackwards(), std::back_inserter(refusals));
  for (const Refusal &refusal : refusals) {
    std::string error;
    EXPECT_FALSE(makeTimeline(refusal.name,
                              {refusal.shape, refusal.delay, false}, error));
    EXPECT_EQ(error, refusal.error);
  }
}

} // namespace
