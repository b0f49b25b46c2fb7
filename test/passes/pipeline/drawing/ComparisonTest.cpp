// SPDX-License-Identifier: Apache-2.0
//
// Tables of several schedules.
#include "passes/pipeline/drawing/Comparison.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "test/passes/pipeline/Examples.h"

#include <nlohmann/json.hpp>

using namespace rota::pipe;

namespace {

CostTable wholeLayers() {
  CostTable costs;
  costs.forward = 2;
  costs.backward = 4;
  costs.backwardInput = costs.backwardWeight = 2;
  return costs;
}

// Compared schedules have equal layers on each rank: with two chunks, half the
// costs and half the activations for each.
TEST(Comparison, isOfTheSameLayers) {
  Timeline one = generated("1f1b", 4, 1, 8);
  Timeline two = generated("zbv", 4, 2, 8, 1, false, Placement::V);
  ComparedSchedule first = compared("1f1b", one, wholeLayers());
  ComparedSchedule second = compared("zbv", two, wholeLayers());
  // 8 microbatches of 6; 1f1b waits for 3 forwards and 3 backwards.
  EXPECT_DOUBLE_EQ(first.makespan, 8 * 6 + 3 * 6);
  EXPECT_DOUBLE_EQ(first.idleShare, 18.0 / 66);
  EXPECT_DOUBLE_EQ(first.steady.time, 8 * 6 + 3 * 6);
  EXPECT_DOUBLE_EQ(first.peakActivations, 4);
  EXPECT_EQ(first.messages, 2 * 3 * 8);
  // The last rank begins 3 half forwards later than the first.
  EXPECT_DOUBLE_EQ(second.makespan, 8 * 6 + 3);
  EXPECT_DOUBLE_EQ(second.idleShare, 0);
  EXPECT_DOUBLE_EQ(second.steady.time, 8 * 6);
  EXPECT_DOUBLE_EQ(second.peakActivations, 4);
  EXPECT_EQ(second.messages, 2 * 6 * 8);
}

TEST(Comparison, scalesTransfersAndNoMessages) {
  CostTable costs = wholeLayers();
  costs.send = 3;
  costs.unshard = 8;
  costs.offload = 4;
  Shape shape{2, 4, 2};
  shape.hasUnpipelined = true;
  CostTable chunks = costsOfChunks(shape, costs);
  EXPECT_EQ(chunks.send, 3);
  EXPECT_EQ(chunks.of({3, ActionKind::Unshard, 0}), 2);
  EXPECT_EQ(chunks.of({3, ActionKind::Offload, 0}), 1);
  EXPECT_EQ(chunks.of({3, ActionKind::Backward, 0}), 1);
  EXPECT_EQ(chunks.of({3, ActionKind::BackwardInput, 0}), 0.5);
  EXPECT_EQ(chunks.of({8, ActionKind::Backward, 0}), 4); // not in the pipeline
}

std::vector<ComparedSchedule> twoRows() {
  ComparedSchedule missing;
  missing.name = "dualpipev";
  missing.error = "expected more";
  missing.shape = {4, 2, 7};
  return {compared("zb1p", generated("zb1p", 4, 1, 8), {}), missing};
}

TEST(Comparison, isATable) {
  EXPECT_EQ("\n" + drawComparison(twoRows()), R"(
 schedule  chunks  placement  makespan  bubble    idle  steady step  steady bubble  activations  of 1f1b  messages
     zb1p       1       loop        27  11.1 %  11.1 %           27         11.1 %            4  100.0 %        48
dualpipev       -          -         -       -       -            -              -            -        -         -
dualpipev: expected more
)");
}

TEST(Comparison, isJson) {
  auto json =
      nlohmann::json::parse(drawComparisonJson(twoRows()), nullptr, false);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["schedule"], "zb1p");
  EXPECT_EQ(json[0]["makespan"], 27);
  EXPECT_EQ(json[0]["messages"], 48);
  EXPECT_EQ(json[0]["peak_activations"], 4);
  EXPECT_EQ(json[0]["share_of_1f1b"], 1);
  EXPECT_FALSE(json[0].contains("error"));
  EXPECT_EQ(json[1]["error"], "expected more");
  EXPECT_EQ(json[1]["microbatches"], 7);
  EXPECT_FALSE(json[1].contains("makespan"));
}

} // namespace
