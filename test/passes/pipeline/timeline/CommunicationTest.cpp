// SPDX-License-Identifier: Apache-2.0
//
// Placement of sends and receives.
#include "test/passes/pipeline/Examples.h"

using namespace rota::pipe;

namespace {

TEST(Communication, keepsTimelinesValidAndAsFast) {
  for (const Example &example : examples()) {
    Timeline with = addCommunication(example.timeline);
    ASSERT_EQ(verified(with), "") << example.name;
    EXPECT_EQ(hasCommunication(with), with.shape.stages > 1) << example.name;
    EXPECT_DOUBLE_EQ(simulate(with, {})->makespan,
                     simulate(example.timeline, {})->makespan)
        << example.name;
  }
}

// A receive is posted no later than its message is ready, and is the last
// action of its rank before that.
TEST(Communication, postsReceivesJustInTime) {
  for (const Example &example : examples()) {
    Timeline with = addCommunication(example.timeline);
    auto simulation = simulate(with, {});
    const Shape &shape = with.shape;
    for (size_t rank = 0; rank < with.ranks.size(); ++rank)
      for (size_t i = 0; i < with.ranks[rank].size(); ++i) {
        const Action &action = with.ranks[rank][i];
        if (action.kind != ActionKind::RecvForward)
          continue;
        int maker = shape.rankOf(action.chunk - 1);
        double ready = -1;
        for (size_t k = 0; k < with.ranks[maker].size(); ++k)
          if (with.ranks[maker][k] ==
              Action{action.chunk - 1, ActionKind::Forward, action.microbatch})
            ready = simulation->spans[maker][k].end;
        EXPECT_LE(simulation->spans[rank][i].start, ready) << example.name;
        size_t next = i;
        while (next < with.ranks[rank].size() &&
               !isCompute(with.ranks[rank][next].kind))
          ++next;
        ASSERT_LT(next, with.ranks[rank].size());
        EXPECT_GT(simulation->spans[rank][next].end, ready) << example.name;
      }
  }
}

// Any costs, some of them 0: the places are valid.
TEST(Communication, keepsTimelinesValidByCosts) {
  std::mt19937 random(11);
  std::vector<Example> all = examples();
  for (Example &example : pairedExamples())
    all.push_back(std::move(example));
  for (const Example &example : all) {
    CostTable costs;
    costs.send = double(random() % 4) / 4;
    costs.pairShare = double(random() % 3) / 2;
    for (int chunk = 0; chunk < example.timeline.shape.chunks(); ++chunk) {
      std::array<double, 4> &row = costs.chunks.emplace_back();
      for (double &cost : row)
        cost = double(random() % 5) / 4;
    }
    EXPECT_EQ(verified(addCommunication(example.timeline, costs)), "")
        << example.name;
  }
}

// A place that is posted by costs hides the latency as well as if places were
// always there. In unit slots it is posted right before its reader, so a rank
// that is busy when a message is ready waits for the whole latency.
TEST(Communication, postsReceivesWhileMessagesTravel) {
  for (const Example &example : examples()) {
    CostTable costs;
    costs.forward = 1.25;
    costs.backward = 2;
    costs.send = 0.5;
    const Timeline &timeline = example.timeline;
    if (timeline.delay == 1)
      EXPECT_NEAR(simulate(addCommunication(timeline, costs), costs)->makespan,
                  simulate(timeline, costs)->makespan, 1e-9)
          << example.name;
  }
  CostTable costs;
  costs.backward = 2;
  costs.send = 0.25;
  Timeline timeline = generated("circular", 8, 2, 32);
  EXPECT_EQ(simulate(addCommunication(timeline), costs)->makespan, 248);
  EXPECT_EQ(simulate(addCommunication(timeline, costs), costs)->makespan,
            216.5);
}

// With M > d*S, microbatches that wait for the next repeat wait on stage 0
// alone; other stages hold one place, or two when delayed.
TEST(Communication, circularStorageIsOnStageZeroAlone) {
  for (auto [s, r, m, d] : {std::tuple(4, 2, 8, 1),
                            {4, 3, 16, 1},
                            {3, 2, 12, 1},
                            {2, 4, 8, 1},
                            {4, 2, 16, 2},
                            {3, 2, 12, 2}}) {
    auto simulation =
        simulate(addCommunication(generated("circular", s, r, m, d)), {});
    for (int rank = 1; rank < s; ++rank)
      EXPECT_EQ(simulation->ranks[rank].peakReceivedForward, d);
    EXPECT_EQ(simulation->ranks[0].peakReceivedForward, m - d * (s - 1));
    // Gradients travel in the opposite direction.
    for (int rank = 0; rank + 1 < s; ++rank)
      EXPECT_EQ(simulation->ranks[rank].peakReceivedBackward, d);
    EXPECT_EQ(simulation->ranks[s - 1].peakReceivedBackward, m - d * (s - 1));
  }
}

TEST(Communication, directForwardingNeedsNoStorage) {
  for (auto [s, r, m, d] :
       {std::tuple(4, 2, 4, 1), {4, 2, 8, 2}, {3, 4, 3, 1}}) {
    auto simulation =
        simulate(addCommunication(generated("circular", s, r, m, d)), {});
    for (const RankUsage &rank : simulation->ranks) {
      EXPECT_LE(rank.peakReceivedForward, d);
      EXPECT_LE(rank.peakReceivedBackward, d);
    }
  }
}

TEST(Communication, rowsOfASmallTimeline) {
  EXPECT_EQ(
      printCsv(addCommunication(generated("1f1b", 2, 1, 3)).ranks),
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0F2,0SEND_F2,0RECV_B1,0B1,"
      "0RECV_B2,0B2\n"
      "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1RECV_F2,1SEND_B1,1F2,1B2,"
      "1SEND_B2\n");
}

// Delayed, a message leaves after the next action, if the rank has one to run.
TEST(Communication, delayedSends) {
  EXPECT_EQ(printCsv(addCommunication(generated("circular", 2, 1, 4, 2)).ranks),
            "0F0,0F1,0SEND_F0,0F2,0SEND_F1,0F3,0SEND_F2,0SEND_F3,0RECV_B0,"
            "0RECV_B1,0B0,0RECV_B2,0B1,0RECV_B3,0B2,0B3\n"
            "1RECV_F0,1RECV_F1,1F0,1RECV_F2,1F1,1RECV_F3,1F2,1F3,1B0,1B1,"
            "1SEND_B0,1B2,1SEND_B1,1B3,1SEND_B2,1SEND_B3\n");
}

} // namespace
