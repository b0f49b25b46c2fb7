// SPDX-License-Identifier: Apache-2.0
//
// Pairs, whose halves run at the same time: in the schedules that have them,
// in the simulator, the verifier and the passes that add actions.
#include "passes/pipeline/timeline/GradientOrder.h"
#include "passes/pipeline/timeline/Offloading.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "test/passes/pipeline/Examples.h"

#include <algorithm>

using namespace rota::pipe;

namespace {

int countPairs(const Timeline &timeline) {
  int count = 0;
  for (const std::vector<Action> &row : timeline.ranks)
    count += std::count_if(row.begin(), row.end(), [](const Action &action) {
      return action.startsPair;
    });
  return count;
}

/// The timeline with every kind of action.
Timeline withAll(const Timeline &timeline, GatherRequest request) {
  std::vector<bool> chunks(timeline.shape.chunks(), true);
  Timeline result = offloadResiduals(addCommunication(timeline), chunks, 1);
  std::string error;
  std::optional<Timeline> gathered = gatherWeights(result, request, error);
  EXPECT_TRUE(gathered) << error;
  return gathered.value_or(result);
}

void expectToKeepItsPairs(const Example &example) {
  const Timeline &timeline = example.timeline;
  ASSERT_EQ(verified(timeline), "") << example.name;
  std::string error;
  EXPECT_EQ(*parseCsv(printCsv(timeline.ranks), error), timeline.ranks);
  for (GatherMode mode : {GatherMode::Auto, GatherMode::PerIteration})
    for (int window : {2, 3}) {
      GatherRequest request{mode, window};
      if (mode == GatherMode::Auto && timeline.shape.repeats == 1)
        request.window.reset();
      Timeline all = withAll(timeline, request);
      EXPECT_EQ(verified(all), "") << example.name << " " << window;
      EXPECT_EQ(countPairs(all), countPairs(timeline)) << example.name;
    }
  if (timeline.shape.microbatches % timeline.shape.stages != 0)
    return;
  std::optional<Timeline> whole = withUnpipelinedLayers(timeline, error);
  ASSERT_TRUE(whole) << example.name << ": " << error;
  EXPECT_EQ(verified(addCommunication(*whole)), "") << example.name;
  EXPECT_EQ(countPairs(*whole), countPairs(timeline)) << example.name;
}

TEST(Pairs, stayPairsWhateverIsAdded) {
  for (const Example &example : pairedExamples()) {
    EXPECT_GT(countPairs(example.timeline), 0) << example.name;
    EXPECT_EQ(reorderedGradients(example.timeline), "") << example.name;
    expectToKeepItsPairs(example);
  }
}

/// Joins an F and a backward that stand side by side, at random.
Timeline paired(Timeline timeline, std::mt19937 &random) {
  for (std::vector<Action> &row : timeline.ranks)
    for (size_t i = 0; i + 1 < row.size(); ++i)
      row[i].startsPair = random() % 2 && !endsPair(row, i) &&
                          rota::canPair(row[i].kind, row[i + 1].kind) &&
                          row[i].microbatch != row[i + 1].microbatch;
  return timeline;
}

TEST(Pairs, stayPairsInRandomOrders) {
  std::mt19937 random(5);
  int valid = 0;
  for (int trial = 0; trial < 300; ++trial) {
    Timeline timeline = paired(randomTimeline(random), random);
    // A rank that waits for both halves may wait for ever.
    if (countPairs(timeline) == 0 || verified(timeline) != "")
      continue;
    ++valid;
    expectToKeepItsPairs({printCsv(timeline.ranks), timeline});
  }
  EXPECT_GT(valid, 50);
}

TEST(Pairs, followOneAnotherWithoutTheFlag) {
  for (auto [name, placement] :
       {std::pair("dualpipev", Placement::V),
        std::pair("interleaved-overlap", Placement::Loop)}) {
    Timeline apart = generated(name, 4, 2, 8, 1, false, placement);
    Timeline pairs = generated(name, 4, 2, 8, 1, false, placement, true);
    EXPECT_EQ(countPairs(apart), 0);
    dropPairs(pairs);
    EXPECT_EQ(pairs.ranks, apart.ranks);
  }
}

TEST(Pairs, areRefusedWhereAScheduleHasNone) {
  ScheduleRequest request{{4, 1, 8}};
  request.pairs = true;
  std::string error;
  EXPECT_FALSE(makeTimeline("1f1b", request, error));
  EXPECT_EQ(error, "expected a schedule with pairs (interleaved-overlap, "
                   "dualpipev, auto), got '1f1b'");
}

// The row of PyTorch's ScheduleDualPipeV, where a backward in a pair is whole.
TEST(Pairs, dualPipeVHasThoseOfPyTorch) {
  EXPECT_EQ(
      printCsv(
          generated("dualpipev", 2, 2, 4, 1, false, Placement::V, true).ranks),
      "0F0,0F1,0F2,3F0,3I0,3W0,3F1,(0F3;3I1)OVERLAP_F_B,3W1,"
      "(3F2;0I0)OVERLAP_F_B,0W0,3I2,3W2,(3F3;0I1)OVERLAP_F_B,0W1,3I3,3W3,0I2,"
      "0W2,0I3,0W3\n"
      "1F0,2F0,1F1,2F1,1F2,2I0,2W0,(2F2;1I0)OVERLAP_F_B,1W0,"
      "(1F3;2I1)OVERLAP_F_B,2W1,(2F3;1I1)OVERLAP_F_B,1W1,2I2,2W2,1I2,1W2,2I3,"
      "1I3,2W3,1W3\n");
}

TEST(Pairs, interleavedOverlapJoinsEachBackwardAndTheNextForward) {
  EXPECT_EQ(printCsv(generated("interleaved-overlap", 2, 2, 4, 1, false,
                               Placement::Loop, true)
                         .ranks),
            "0F0,0F1,2F0,2F1,0F2,0F3,(2B0;2F2)OVERLAP_F_B,"
            "(2B1;2F3)OVERLAP_F_B,0B0,0B1,2B2,2B3,0B2,0B3\n"
            "1F0,1F1,3F0,3F1,(3B0;1F2)OVERLAP_F_B,(3B1;1F3)OVERLAP_F_B,"
            "(1B0;3F2)OVERLAP_F_B,(1B1;3F3)OVERLAP_F_B,3B2,3B3,1B2,1B3\n");
}

constexpr const char *kPair = "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n";

TEST(Pairs, takeTheLongerHalfAndAShareOfTheShorter) {
  Timeline timeline = parsed(kPair);
  CostTable costs;
  costs.forward = 2;
  costs.backward = 5;
  for (double share : {0.0, 0.25, 1.0}) {
    costs.pairShare = share;
    auto simulation = simulate(timeline, costs);
    double pair = 5 + share * 2;
    EXPECT_DOUBLE_EQ(simulation->makespan, 2 + pair + 5);
    EXPECT_DOUBLE_EQ(simulation->ranks[0].busy, 2 + pair + 5);
    for (int half : {1, 2}) {
      EXPECT_DOUBLE_EQ(simulation->spans[0][half].start, 2);
      EXPECT_DOUBLE_EQ(simulation->spans[0][half].end, 2 + pair);
    }
    costs.cores = 1;
    EXPECT_DOUBLE_EQ(simulate(timeline, costs)->makespan, 2 + pair + 5);
    costs.cores = 0;
  }
}

// The halves start when the later one may.
TEST(Pairs, waitForBothHalves) {
  Timeline timeline = parsed("0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n"
                             "1F0,1B0,1F1,1B1,1F2,1B2\n");
  CostTable costs;
  costs.send = 3; // 1F0 at 4, 1B0 ends at 6, its gradient is there at 9
  auto simulation = simulate(timeline, costs);
  EXPECT_EQ(simulation->spans[0][2].start, 9);
  EXPECT_EQ(simulation->spans[0][3].start, 9);
  EXPECT_EQ(simulation->ranks[0].exposed.messages, 3 + 3); // and 0B2
  // The message of the F leaves when its pair ends.
  Timeline sends = addCommunication(timeline);
  EXPECT_EQ(verified(sends), "");
  EXPECT_NE(
      printCsv(sends.ranks).find("0RECV_B0,(0F2;0B0)OVERLAP_F_B,0SEND_F2,"),
      std::string::npos)
      << printCsv(sends.ranks);
}

// A pair begins to hold new values before it frees others.
TEST(Pairs, holdBothHalves) {
  Timeline timeline = parsed("0F0,(0B0;0F1)OVERLAP_F_B,0B1\n");
  EXPECT_EQ(simulate(timeline, {})->ranks[0].peakLive, 2);
  dropPairs(timeline);
  EXPECT_EQ(simulate(timeline, {})->ranks[0].peakLive, 1);
}

// So a backward that comes first frees its activation too late for the forward.
TEST(Pairs, holdOneMoreActivationBehindABackward) {
  for (auto [name, placement, more] :
       {std::tuple("dualpipev", Placement::V, 0),
        {"interleaved-overlap", Placement::Loop, 1}}) {
    auto pairs =
        simulate(generated(name, 4, 2, 16, 1, false, placement, true), {});
    auto apart = simulate(generated(name, 4, 2, 16, 1, false, placement), {});
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_EQ(pairs->ranks[rank].peakLive,
                apart->ranks[rank].peakLive + more);
  }
}

TEST(Pairs, needTheWeightsOfBothHalves) {
  Timeline timeline = parsed("0F0,1F0,(0F1;1B0)OVERLAP_F_B,0B0,1F1,1B1,0B1\n");
  ASSERT_EQ(verified(timeline), "");
  std::string error;
  EXPECT_FALSE(gatherWeights(timeline, {GatherMode::PerRepeat, 1}, error));
  EXPECT_EQ(error, "expected a window of at least 2 chunks for the pair "
                   "(0F1;1B0)OVERLAP_F_B, got 1");
  EXPECT_EQ(
      printCsv(
          gatherWeights(timeline, {GatherMode::PerIteration, 2}, error)->ranks),
      "0UNSHARD,1UNSHARD,0F0,0RESHARD,0UNSHARD,1F0,1RESHARD,1UNSHARD,"
      "(0F1;1B0)OVERLAP_F_B,0RESHARD,1RESHARD,0UNSHARD,1UNSHARD,1REDUCE_GRAD,"
      "0B0,0RESHARD,0REDUCE_GRAD,1F1,1RESHARD,1UNSHARD,0UNSHARD,1B1,1RESHARD,"
      "1REDUCE_GRAD,0B1,0RESHARD,0REDUCE_GRAD\n");
}

TEST(Pairs, areOfAForwardAndABackwardOfTwoMicrobatches) {
  EXPECT_EQ(verified(parsed(kPair)), "");
  EXPECT_EQ(verified(parsed("(0F0;0F1)OVERLAP_F_B,0B0,0B1\n")),
            "rank 0, position 0, 0F0: expected a pair of an F and a B or I, "
            "got 0F0 and 0F1\n");
  EXPECT_EQ(verified(parsed("0F0,0I0,(0F1;0W0)OVERLAP_F_B,0B1\n")),
            "rank 0, position 2, 0F1: expected a pair of an F and a B or I, "
            "got 0F1 and 0W0\n");
  EXPECT_EQ(verified(parsed("(0F0;0B0)OVERLAP_F_B\n")),
            "rank 0, position 0, 0F0: expected a pair of two microbatches, as "
            "the backwards of one wait for its forwards, got 0F0 and 0B0\n");
  Timeline timeline = parsed(kPair);
  timeline.ranks[0].back().startsPair = true;
  EXPECT_EQ(verified(timeline), "rank 0, position 3, 0B1: expected the other "
                                "half of its pair after it\n");
  timeline = parsed("0F0,0F1,(0B0;0F2)OVERLAP_F_B,0B1,0B2\n");
  timeline.ranks[0][3].startsPair = true;
  EXPECT_EQ(verified(timeline), "rank 0, position 2, 0B0: expected a pair of "
                                "an F and a B or I, got 0B0 and 0F2\n");
}

// Each rank waits for the other one's pair.
TEST(Pairs, mayWaitForEver) {
  EXPECT_EQ(verified(parsed("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"
                            "1F0,(1F1;1B0)OVERLAP_F_B,1B1\n")),
            "rank 0, position 2, 0B0: deadlock: waits for ever for the "
            "gradient of microbatch 0 from chunk 1 to chunk 0\n"
            "rank 1, position 1, 1F1: deadlock: waits for ever for the "
            "activation of microbatch 1 from chunk 0 to chunk 1\n");
}

} // namespace
