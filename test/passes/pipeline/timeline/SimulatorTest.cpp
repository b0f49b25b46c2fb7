// SPDX-License-Identifier: Apache-2.0
//
// Times and memory of simulated timelines against closed forms.
#include "passes/pipeline/timeline/Communication.h"
#include "passes/pipeline/timeline/SteadyStep.h"
#include "test/passes/pipeline/Examples.h"

#include <algorithm>

using namespace rota::pipe;

namespace {

TEST(Simulator, circularHasTheClosedFormBubble) {
  for (auto [s, r, m, d] : {std::tuple(4, 2, 8, 1),
                            {4, 2, 8, 2},
                            {4, 2, 4, 1},
                            {3, 5, 9, 1},
                            {3, 2, 6, 2},
                            {2, 16, 4, 1},
                            {5, 1, 10, 2},
                            {1, 3, 7, 1}}) {
    int idle = d * (s - 1), work = m * r;
    Timeline timeline = generated("circular", s, r, m, d);
    for (double backward : {1.0, 2.0}) {
      CostTable costs;
      costs.backward = backward;
      auto simulation = simulate(timeline, costs);
      EXPECT_DOUBLE_EQ(simulation->makespan, (work + idle) * (1 + backward));
      EXPECT_NEAR(simulation->bubble, double(idle) / (work + idle), 1e-12);
    }
  }
  EXPECT_NEAR(simulate(generated("circular", 4, 2, 8), {})->bubble, 0.158,
              5e-4);
  EXPECT_NEAR(simulate(generated("circular", 4, 2, 8, 2), {})->bubble, 0.273,
              5e-4);
}

TEST(Simulator, gpipeAndOneFOneBHaveTheClosedFormBubble) {
  for (auto [s, m] : {std::pair(4, 8), {3, 5}, {2, 1}, {7, 20}, {1, 4}})
    for (const char *name : {"gpipe", "1f1b"}) {
      CostTable costs;
      costs.backward = 2;
      auto simulation = simulate(generated(name, s, 1, m), costs);
      EXPECT_NEAR(simulation->bubble, (s - 1.0) / (m + s - 1), 1e-12)
          << name << " " << s << " " << m;
    }
}

TEST(Simulator, interleavedHasTheClosedFormBubble) {
  for (auto [s, r, m] :
       {std::tuple(4, 2, 8), {2, 3, 6}, {3, 2, 9}, {4, 4, 16}}) {
    auto simulation = simulate(generated("interleaved-1f1b", s, r, m), {});
    EXPECT_NEAR(simulation->bubble, (s - 1.0) / (m * r + s - 1), 1e-12)
        << s << " " << r << " " << m;
  }
}

// With a core for each rank nothing changes; one core is never idle; in
// between, no more actions than cores run at a time.
TEST(Simulator, ranksShareCores) {
  CostTable costs;
  costs.forward = 1.25;
  costs.backwardWeight = 0.5;
  costs.send = 0.25;
  for (const Example &example : examples()) {
    Timeline timeline = addCommunication(example.timeline);
    int ranks = int(timeline.ranks.size());
    auto alone = simulate(timeline, costs);
    double work = 0;
    for (const RankUsage &rank : alone->ranks)
      work += rank.busy;
    auto with = [&](int cores) {
      CostTable shared = costs;
      shared.cores = cores;
      return simulate(timeline, shared);
    };
    EXPECT_EQ(with(ranks)->makespan, alone->makespan) << example.name;
    auto two = with(2);
    EXPECT_GE(two->makespan, std::max(work / 2, alone->makespan) - 1e-9);
    EXPECT_LE(two->makespan, with(1)->makespan + 1e-9) << example.name;
    std::vector<std::pair<double, int>> changes; // in the number that run
    for (int rank = 0; rank < ranks; ++rank)
      for (size_t i = 0; i < timeline.ranks[rank].size(); ++i)
        if (isCompute(timeline.ranks[rank][i].kind)) {
          changes.push_back({two->spans[rank][i].start, 1});
          changes.push_back({two->spans[rank][i].end, -1});
        }
    std::sort(changes.begin(), changes.end());
    int running = 0;
    for (auto [time, change] : changes)
      EXPECT_LE(running += change, 2) << example.name << " at " << time;
  }
  Timeline plain = generated("1f1b", 4, 1, 6);
  costs.cores = 1;
  costs.send = 0;
  EXPECT_DOUBLE_EQ(simulate(plain, costs)->makespan, 4 * 6 * (1.25 + 1));
}

// Cores that nobody asks for work for the others: of 1f1b none is idle,
// whatever the number of stages, and rows of several ranks ask for a core for
// each.
TEST(Simulator, idleCoresAreLent) {
  CostTable costs;
  costs.lent = 1;
  for (int stages : {1, 2, 4}) {
    Timeline timeline = generated("1f1b", stages, 1, 8);
    for (int cores : {1, 2, 4}) {
      costs.cores = cores;
      costs.ranksOfRow = 1;
      auto lent = simulate(timeline, costs);
      EXPECT_NEAR(lent->makespan, 2.0 * 8 * stages / cores, 1e-9)
          << stages << " on " << cores;
      costs.ranksOfRow = 8; // one row at a time, at a part of its speed
      EXPECT_NEAR(simulate(timeline, costs)->makespan, 8 * lent->makespan,
                  1e-9);
      EXPECT_NEAR(steadyStep(timeline, costs, 0)->bubble, 0, 1e-9);
    }
  }
}

// Gathers of one unit, each before a forward of two and a backward of two, or
// beside it: those that are hidden take half of the speed of the work.
TEST(Simulator, transfersSlowWork) {
  Timeline timeline;
  timeline.shape = {1, 2, 1};
  timeline.ranks = {{{0, ActionKind::Unshard},
                     {1, ActionKind::Unshard},
                     {0, ActionKind::Forward},
                     {1, ActionKind::Forward},
                     {1, ActionKind::Backward},
                     {1, ActionKind::ReduceGrad},
                     {0, ActionKind::Backward},
                     {0, ActionKind::ReduceGrad}}};
  CostTable costs;
  costs.forward = costs.backward = 2;
  costs.unshard = costs.reduceGrad = 1;
  EXPECT_EQ(simulate(timeline, costs)->makespan, 1 + 4 * 2 + 1);
  costs.slowsWork.assign(2, {});
  for (auto &chunk : costs.slowsWork)
    chunk.fill(0.5);
  for (int cores : {0, 1}) {
    costs.cores = cores;
    if (cores > 0)
      costs.lent = 1;
    auto slowed = simulate(timeline, costs);
    EXPECT_EQ(slowed->makespan, 1 + 4 * 2 + 0.5 + 0.5 + 1);
    EXPECT_EQ(slowed->ranks[0].busy, 4 * 2 + 0.5 + 0.5);
    EXPECT_EQ(slowed->ranks[0].idle, 0);
    EXPECT_EQ(slowed->ranks[0].exposed.gathers, 1);
  }
  // A row that works at half of its speed is slowed down as long.
  costs.ranksOfRow = 2;
  EXPECT_EQ(simulate(timeline, costs)->makespan, 1 + 2 * 4 * 2 + 0.5 + 0.5 + 1);
}

// A gather of two units on a rank that waits takes the core of another one,
// unless each has its own: then it takes nothing.
TEST(Simulator, transfersTakeSharedCores) {
  Timeline timeline;
  timeline.shape = {2, 1, 1};
  timeline.ranks = {{{0, ActionKind::Forward}, {0, ActionKind::Backward}},
                    {{1, ActionKind::Unshard},
                     {1, ActionKind::Forward},
                     {1, ActionKind::Backward}}};
  CostTable costs;
  costs.forward = costs.backward = 4;
  costs.unshard = 2;
  costs.slowsWork.assign(2, {});
  for (auto &chunk : costs.slowsWork)
    chunk.fill(1);
  for (int cores : {0, 1, 2}) {
    costs.cores = cores;
    auto run = simulate(timeline, costs);
    EXPECT_EQ(run->spans[0][0].end, cores == 1 ? 4 + 2 : 4) << cores;
    EXPECT_EQ(run->makespan, run->spans[0][0].end + 3 * 4) << cores;
  }
}

TEST(Simulator, liveActivations) {
  auto oneFOneB = simulate(generated("1f1b", 4, 1, 8), {});
  auto gpipe = simulate(generated("gpipe", 4, 1, 8), {});
  auto circular = simulate(generated("circular", 4, 2, 8), {});
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(oneFOneB->ranks[rank].peakLive, 4 - rank);
    EXPECT_EQ(gpipe->ranks[rank].peakLive, 8);
    EXPECT_EQ(circular->ranks[rank].peakLive, 16);
  }
}

// Ranks 0 to 2 of 1f1b wait p - 1 - s forwards and as many backwards; the time
// before a rank begins and after it ends is no idle time.
TEST(Simulator, idleTimeIsBetweenTheFirstActionAndTheLast) {
  CostTable costs;
  costs.backward = 2;
  auto simulation = simulate(generated("1f1b", 4, 1, 8), costs);
  for (int rank = 0; rank < 4; ++rank) {
    const RankUsage &usage = simulation->ranks[rank];
    EXPECT_DOUBLE_EQ(usage.idle, 3.0 * (3 - rank)) << rank;
    EXPECT_DOUBLE_EQ(usage.idleShare, usage.idle / (24 + usage.idle)) << rank;
  }
  EXPECT_DOUBLE_EQ(simulation->idleShare, 9.0 / 33);
  // Actions of other kinds are no work.
  Timeline timeline = addCommunication(parsed("0F0,0B0\n1F0,1B0\n"));
  costs.send = 2;
  EXPECT_DOUBLE_EQ(simulate(timeline, costs)->ranks[0].idle, 2 + 1 + 2 + 2);
  EXPECT_DOUBLE_EQ(simulate(timeline, costs)->ranks[1].idle, 0);
}

TEST(Simulator, costsMayDifferByChunk) {
  Timeline timeline = generated("gpipe", 2, 1, 1);
  CostTable costs;
  costs.chunks = {{1, 2, 0, 0}, {3, 5, 0, 0}};
  costs.send = 0.5;
  auto simulation = simulate(timeline, costs);
  EXPECT_DOUBLE_EQ(simulation->makespan, 1 + 0.5 + 3 + 5 + 0.5 + 2);
  EXPECT_DOUBLE_EQ(simulation->ranks[0].busy, 3);
  EXPECT_DOUBLE_EQ(simulation->spans[1][1].start, 4.5);
  EXPECT_DOUBLE_EQ(simulation->ranks[1].bubble, 1 - 8.0 / 12);
}

TEST(Simulator, saysNothingAboutADeadlock) {
  EXPECT_FALSE(simulate(parsed("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"), {}));
}

// The messages of a channel travel one after the other.
TEST(Simulator, messagesOfAChannelTravelOneAfterTheOther) {
  Timeline timeline = parsed("0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0RECV_B1,0B0,"
                             "0B1\n"
                             "1RECV_F0,1RECV_F1,1F0,1F1,1B0,1SEND_B0,1B1,"
                             "1SEND_B1\n");
  CostTable costs;
  costs.send = 4;
  auto simulation = simulate(timeline, costs);
  ASSERT_TRUE(simulation);
  EXPECT_DOUBLE_EQ(simulation->spans[1][2].start, 5);
  EXPECT_DOUBLE_EQ(simulation->spans[1][3].start, 9);
}

} // namespace
