// SPDX-License-Identifier: Apache-2.0
//
// Where sums of gradients and gathers of updated weights stand, how long a rank
// waits for them, and what the verifier refuses.
#include "passes/pipeline/timeline/UpdateExchange.h"
#include "passes/pipeline/timeline/Simulator.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "test/passes/pipeline/Damage.h"

using namespace rota::pipe;

namespace {

std::string rowOf(const Timeline &timeline, int rank) {
  return printCsv({timeline.ranks[rank]});
}

Timeline gathered(const Timeline &timeline, GatherMode mode) {
  std::string error;
  auto result = gatherWeights(timeline, {mode, {}, {}}, error);
  EXPECT_TRUE(result) << error;
  return result.value_or(Timeline());
}

TEST(UpdateExchange, sumsFollowTheLastGradient) {
  Timeline timeline = addCommunication(generated("circular", 2, 2, 2));
  EXPECT_EQ(rowOf(exchangeUpdates(timeline, {1, true}), 0),
            "0REFRESH,2REFRESH,0F0,0SEND_F0,0F1,0SEND_F1,2RECV_F0,2F0,2SEND_F0,"
            "2RECV_F1,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,2RECV_B1,2B1,2SEND_B1,"
            "0RECV_B0,2SUM_GRAD,0B0,0RECV_B1,0B1,0SUM_GRAD\n");
}

// The second round, and any round after REDUCE_GRAD, comes a chunk later.
TEST(UpdateExchange, whatIsWaitedForHasTime) {
  Timeline timeline = generated("gpipe", 1, 3, 1);
  EXPECT_EQ(rowOf(exchangeUpdates(timeline, {2, false}), 0),
            "0F0,1F0,2F0,2B0,2SUM_GRAD,1B0,1SUM_GRAD,2SUM_GRAD,0B0,0SUM_GRAD,"
            "1SUM_GRAD,0SUM_GRAD\n");
  timeline = gathered(timeline, GatherMode::Once);
  EXPECT_EQ(rowOf(exchangeUpdates(timeline, {1, true}), 0),
            "0REFRESH,1REFRESH,2REFRESH,0UNSHARD,1UNSHARD,2UNSHARD,0F0,1F0,2F0,"
            "2B0,2RESHARD,2REDUCE_GRAD,1B0,1RESHARD,1REDUCE_GRAD,2SUM_GRAD,0B0,"
            "0RESHARD,0REDUCE_GRAD,1SUM_GRAD,0SUM_GRAD\n");
}

TEST(UpdateExchange, leavesWhatIsThereAndWhatHasNone) {
  Timeline one = generated("gpipe", 1, 1, 2);
  EXPECT_EQ(exchangeUpdates(one, {2, true}).ranks, one.ranks);
  Timeline once = exchangeUpdates(generated("1f1b", 2, 1, 2), {1, true});
  EXPECT_EQ(exchangeUpdates(once, {1, true}).ranks, once.ranks);
  // Several stages have terms of the unpipelined chunk, number 2.
  std::string error;
  auto shared = withUnpipelinedLayers(generated("gpipe", 2, 1, 2), error);
  ASSERT_TRUE(shared) << error;
  for (const std::vector<Action> &row :
       exchangeUpdates(*shared, {1, true}).ranks)
    for (const Action &action : row)
      EXPECT_TRUE(action.chunk != 2 || isCompute(action.kind))
          << toString(action);
}

// Three chunks of one action each: a sum of a slot hides behind the next
// chunk's backward, the last one shows; so does the first refresh.
TEST(UpdateExchange, oneChunkIsExposed) {
  Timeline timeline = exchangeUpdates(generated("gpipe", 1, 3, 1), {1, true});
  CostTable costs;
  costs.sumGrad = costs.refresh = 1;
  auto simulation = simulate(timeline, costs);
  ASSERT_TRUE(simulation);
  EXPECT_EQ(simulation->ranks[0].exposed.sums, 1);
  EXPECT_EQ(simulation->ranks[0].exposed.refreshes, 1);
  EXPECT_EQ(simulation->makespan, 8);
}

// A sum starts when the reduction before it ends, and stops no computation.
TEST(UpdateExchange, aSumWaitsForItsReduction) {
  Timeline timeline = exchangeUpdates(
      gathered(generated("gpipe", 1, 2, 1), GatherMode::Once), {1, false});
  CostTable costs;
  costs.reduceGrad = 3;
  costs.sumGrad = 1;
  auto simulation = simulate(timeline, costs);
  ASSERT_TRUE(simulation);
  // Chunk 1 is reduced from 3 to 6, chunk 0, whose B ends at 4, from 6 to 9.
  EXPECT_EQ(simulation->ranks[0].exposed.reductions, 5);
  EXPECT_EQ(simulation->ranks[0].exposed.sums, 1);
  EXPECT_EQ(simulation->makespan, 10);
}

TEST(UpdateExchange, everyScheduleIsVerified) {
  for (GatherMode mode : {GatherMode::Once, GatherMode::PerIteration})
    for (const char *name : {"gpipe", "circular", "1f1b", "zb1p"})
      for (int rounds : {1, 2}) {
        Timeline timeline =
            gathered(addCommunication(generated(name, 4, 1, 8)), mode);
        for (const Violation &violation :
             verifyTimeline(exchangeUpdates(timeline, {rounds, true})))
          ADD_FAILURE() << name << ": " << violation.str();
      }
}

struct Wrong {
  const char *row, *rule;
};

TEST(UpdateExchange, whatIsOutOfOrderIsRefused) {
  for (auto [row, rule] : {
           Wrong{"0F0,0SUM_GRAD,0B0", "position 1, 0SUM_GRAD: there is no "
                                      "gradient to sum"},
           {"0F0,0F1,0B0,0SUM_GRAD,0B1",
            "position 4, 0B1: expected it before the chunk's SUM_GRAD at "
            "position 3"},
           {"0F0,0B0,0SUM_GRAD,0REDUCE_GRAD",
            "position 2, 0SUM_GRAD: expected a REDUCE_GRAD of the chunk before "
            "it"},
           {"0F0,0REFRESH,0B0", "position 1, 0REFRESH: expected one REFRESH of "
                                "the chunk, before all uses"},
           {"0REFRESH,0REFRESH,0F0,0B0",
            "position 1, 0REFRESH: expected one REFRESH of the chunk"},
           {"0UNSHARD,0REFRESH,0F0,0B0",
            "position 1, 0REFRESH: expected one REFRESH of the chunk"},
       }) {
    std::string error;
    auto rows = parseCsv(row, error);
    ASSERT_TRUE(rows) << error;
    int microbatches = std::string(row).find("F1") == std::string::npos ? 1 : 2;
    Timeline timeline{{1, 1, microbatches}, *rows};
    std::string all;
    for (const Violation &violation : verifyTimeline(timeline))
      all += violation.str() + "\n";
    EXPECT_NE(all.find(rule), std::string::npos) << row << "\n" << all;
  }
}

} // namespace
