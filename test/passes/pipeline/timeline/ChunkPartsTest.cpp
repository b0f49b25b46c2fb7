// SPDX-License-Identifier: Apache-2.0
//
// Timelines of the parts of chunks: of every schedule, as valid and as long as
// those of the chunks.
#include "passes/pipeline/timeline/ChunkParts.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "test/passes/pipeline/Examples.h"

using namespace rota::pipe;

namespace {

using Counts = std::vector<int64_t>;

Shape shapeOf(int stages, int repeats, int parts = 1) {
  Shape shape;
  shape.stages = stages;
  shape.repeats = repeats;
  shape.parts = parts;
  return shape;
}

double makespan(const Timeline &timeline, double forward) {
  CostTable costs;
  costs.forward = costs.backwardInput = costs.backwardWeight = forward;
  costs.backward = 2 * forward;
  auto simulation = simulate(timeline, costs);
  return simulation ? simulation->makespan : -1;
}

void expectAsLong(const Timeline &timeline, const std::string &name) {
  Timeline divided = divideChunks(timeline, 3);
  ASSERT_EQ(verified(divided), "") << name;
  // A message with a delay waits for a part instead of a chunk.
  if (timeline.delay == 1)
    EXPECT_DOUBLE_EQ(makespan(divided, 1), makespan(timeline, 3)) << name;
  else
    EXPECT_LE(makespan(divided, 1), makespan(timeline, 3)) << name;
  Timeline whole = addCommunication(divided);
  EXPECT_EQ(verified(whole), "") << name;
  std::string error;
  auto gathered = gatherWeights(whole, {GatherMode::PerLayer, {}, {}}, error);
  ASSERT_TRUE(gathered) << name << ": " << error;
  EXPECT_EQ(verified(*gathered), "") << name;
}

TEST(ChunkParts, keepEverySchedule) {
  for (const Example &example : examples())
    expectAsLong(example.timeline, example.name);
}

TEST(ChunkParts, keepPairs) {
  for (const Example &example : pairedExamples()) {
    expectAsLong(example.timeline, example.name);
    std::string row = printCsv(divideChunks(example.timeline, 2).ranks);
    EXPECT_NE(row.find("OVERLAP_F_B"), std::string::npos) << example.name;
  }
}

TEST(ChunkParts, leaveTheUnpipelinedChunkWhole) {
  std::string error;
  for (const char *name : {"1f1b", "gpipe"}) {
    auto whole = withUnpipelinedLayers(generated(name, 3, 1, 6), error);
    ASSERT_TRUE(whole) << error;
    Timeline divided = divideChunks(*whole, 4);
    EXPECT_EQ(verified(divided), "") << name;
    EXPECT_EQ(divided.shape.chunks(), 13);
    EXPECT_EQ(verified(addCommunication(divided)), "") << name;
  }
}

/// A file may have messages, which leave and enter the parts at the ends.
TEST(ChunkParts, moveMessagesToTheEnds) {
  Timeline timeline = parsed("0F0,0SEND_F0,0RECV_B0,0B0\n"
                             "1RECV_F0,1F0,1B0,1SEND_B0\n");
  EXPECT_EQ(printCsv(divideChunks(timeline, 2).ranks),
            "0F0,1F0,1SEND_F0,1RECV_B0,1B0,0B0\n"
            "2RECV_F0,2F0,3F0,3B0,2B0,2SEND_B0\n");
}

TEST(ChunkParts, divideHalvesOfPairs) {
  Timeline timeline = parsed("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
  EXPECT_EQ(printCsv(divideChunks(timeline, 2).ranks),
            "0F0,1F0,(0F1;1B0)OVERLAP_F_B,(1F1;0B0)OVERLAP_F_B,1B1,0B1\n");
}

TEST(ChunkParts, haveALayerOrAnEndEach) {
  // The embedding and the loss may be alone, so one chunk has two parts more.
  EXPECT_EQ(mostParts(shapeOf(1, 1), {4}), 6);
  EXPECT_EQ(layersOfParts(shapeOf(1, 1, 6), {4}), (Counts{0, 1, 1, 1, 1, 0}));
  EXPECT_EQ(mostParts(shapeOf(2, 2), {2, 2, 2, 2}), 2);
  EXPECT_EQ(layersOfParts(shapeOf(2, 2, 2), {2, 2, 2, 2}), Counts(8, 1));
  // 126 layers on 64 chunks, of which the ends have one less.
  Counts layers(64, 2);
  layers.front() = layers.back() = 1;
  EXPECT_EQ(mostParts(shapeOf(16, 4), layers), 2);
  Counts parts(128, 1);
  parts.front() = parts.back() = 0;
  EXPECT_EQ(layersOfParts(shapeOf(16, 4, 2), layers), parts);
  // A chunk that has more layers than parts has parts of two.
  EXPECT_EQ(mostParts(shapeOf(3, 1), {3, 5, 2}), 3);
  EXPECT_EQ(layersOfParts(shapeOf(3, 1, 3), {3, 5, 2}),
            (Counts{1, 1, 1, 2, 2, 1, 1, 1, 0}));
  // The loss of an unpipelined chunk makes no part.
  Shape unpipelined = shapeOf(2, 1);
  unpipelined.hasUnpipelined = true;
  EXPECT_EQ(mostParts(unpipelined, {2, 2, 7}), 2);
  unpipelined.parts = 2;
  EXPECT_EQ(layersOfParts(unpipelined, {2, 2, 7}), (Counts{1, 1, 1, 1, 7}));
}

TEST(ChunkParts, haveRanksAndRowsOfTheirChunk) {
  Shape shape = shapeOf(3, 2, 4);
  shape.placement = Placement::V;
  Shape chunks = shapeOf(3, 2);
  chunks.placement = Placement::V;
  EXPECT_EQ(shape.chunks(), 24);
  for (int chunk = 0; chunk < 24; ++chunk) {
    EXPECT_EQ(shape.rankOf(chunk), chunks.rankOf(chunk / 4));
    EXPECT_EQ(shape.rowOf(chunk), chunks.rowOf(chunk / 4) * 4 + chunk % 4);
    EXPECT_EQ(shape.chunkOf(shape.rankOf(chunk), shape.rowOf(chunk)), chunk);
  }
}

} // namespace
