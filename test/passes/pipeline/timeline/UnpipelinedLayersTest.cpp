// SPDX-License-Identifier: Apache-2.0
//
// Unpipelined layers: rank and time of their microbatches.
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "test/passes/pipeline/Examples.h"

#include <algorithm>

using namespace rota::pipe;

namespace {

Timeline withUnpipelined(const char *name, int stages, int repeats,
                         int microbatches, int delay = 1, bool split = false) {
  Shape shape{stages, repeats, microbatches};
  shape.hasUnpipelined = true;
  std::string error;
  auto timeline = makeTimeline(name, {shape, delay, split}, error);
  EXPECT_TRUE(timeline) << error;
  return timeline.value_or(Timeline());
}

std::string grid(const Timeline &timeline) {
  return "\n" + drawGrid(timeline, *simulate(timeline, {}));
}

// Ranks take the microbatches of the unpipelined chunk while they would wait
// for the first backward.
TEST(UnpipelinedLayers, runsOnAllRanks) {
  EXPECT_EQ(grid(withUnpipelined("circular", 2, 1, 4)), R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13
rank 0  0F0 0F1 2F0 2B0 0F2 0F3 2F2 2B2 .   .   0B0 0B1 0B2 0B3
rank 1  .   1F0 1F1 2F1 2B1 1F2 1F3 2F3 2B3 1B0 1B1 1B2 1B3 .
)");
  EXPECT_EQ(grid(withUnpipelined("circular", 3, 2, 3)), R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17
rank 0  0F0 0F1 0F2 3F0 3F1 3F2 6F0 6B0 .   .   .   .   3B0 3B1 3B2 0B0 0B1 0B2
rank 1  .   1F0 1F1 1F2 4F0 4F1 4F2 6F1 6B1 .   .   4B0 4B1 4B2 1B0 1B1 1B2 .
rank 2  .   .   2F0 2F1 2F2 5F0 5F1 5F2 6F2 6B2 5B0 5B1 5B2 2B0 2B1 2B2 .   .
)");
  EXPECT_EQ(grid(withUnpipelined("1f1b", 2, 1, 4, 1, true)), R"(
slot    0   1   2   3   4   5   6   7   8   9   10  11  12  13  14  15  16  17  18  19  20  21
rank 0  0F0 0F1 2F0 2I0 2W0 0I0 0F2 0W0 .   .   0I1 0W1 2F2 2I2 0F3 0I2 2W2 0W2 .   .   0I3 0W3
rank 1  .   1F0 .   .   1I0 1F1 1W0 2F1 2I1 1I1 2W1 1F2 1W1 .   1I2 1F3 1W2 2F3 2I3 1I3 2W3 1W3
)");
}

TEST(UnpipelinedLayers, isValidUnderEverySchedule) {
  for (const Example &example : examples()) {
    Timeline timeline = example.timeline;
    if (timeline.shape.microbatches % timeline.shape.stages != 0)
      continue;
    std::string error;
    auto whole = withUnpipelinedLayers(timeline, error);
    ASSERT_TRUE(whole) << example.name << ": " << error;
    ASSERT_EQ(verified(*whole), "") << example.name;
    Timeline with = addCommunication(*whole);
    ASSERT_EQ(verified(with), "") << example.name;
    EXPECT_DOUBLE_EQ(simulate(with, {})->makespan,
                     simulate(*whole, {})->makespan)
        << example.name;
    for (GatherMode mode : {GatherMode::Once, GatherMode::PerRepeat}) {
      auto gathered = gatherWeights(with, {mode, {}, {}}, error);
      ASSERT_TRUE(gathered) << example.name << ": " << error;
      ASSERT_EQ(verified(*gathered), "") << example.name;
    }
    // The shape can be inferred from the text form.
    if (timeline.shape.stages > 1)
      EXPECT_EQ(inferShape(whole->ranks), whole->shape) << example.name;
  }
}

TEST(UnpipelinedLayers, isValidInRandomOrders) {
  std::mt19937 random(3);
  int done = 0;
  for (int trial = 0; trial < 400; ++trial) {
    Timeline timeline = randomTimeline(random);
    if (timeline.shape.microbatches % timeline.shape.stages != 0)
      continue;
    ++done;
    std::string error;
    auto whole = withUnpipelinedLayers(timeline, error);
    ASSERT_TRUE(whole) << error;
    ASSERT_EQ(verified(*whole), "") << printCsv(timeline.ranks);
    ASSERT_EQ(verified(addCommunication(*whole)), "") << printCsv(whole->ranks);
  }
  EXPECT_GT(done, 100);
}

// The rows' own order stays, and each F is followed by its backward.
TEST(UnpipelinedLayers, keepsTheRows) {
  for (const char *name : {"gpipe", "circular", "1f1b"})
    for (bool split : {false, true}) {
      Timeline plain = generated(name, 4, 1, 8, 1, split);
      std::string error;
      Timeline whole = *withUnpipelinedLayers(plain, error);
      for (int rank = 0; rank < 4; ++rank) {
        std::vector<Action> &row = whole.ranks[rank];
        for (size_t i = 0; i < row.size(); ++i)
          if (row[i].chunk == 4 && row[i].kind == ActionKind::Forward) {
            EXPECT_EQ(row[i].microbatch % 4, rank);
            EXPECT_EQ(row[i + 1].chunk, 4);
            EXPECT_EQ(row[i + 1].kind,
                      split ? ActionKind::BackwardInput : ActionKind::Backward);
          }
        std::erase_if(row, [](const Action &a) { return a.chunk == 4; });
        EXPECT_EQ(row, plain.ranks[rank]) << name;
      }
    }
}

TEST(UnpipelinedLayers, refusesWhatDoesNotFit) {
  std::string error;
  EXPECT_FALSE(withUnpipelinedLayers(generated("gpipe", 3, 1, 5), error));
  EXPECT_EQ(error,
            "expected microbatches to be a multiple of stages, which divide "
            "those of the layers outside of the pipeline, got 5 and 3");
  EXPECT_FALSE(withUnpipelinedLayers(
      addCommunication(generated("gpipe", 2, 1, 2)), error));
  EXPECT_EQ(error,
            "expected F, B, I and W alone in a timeline to which the layers "
            "outside of the pipeline are added, got 0SEND_F0 on rank 0");
}

TEST(UnpipelinedLayers, verifierChecksItsPlaceAndOrder) {
  Timeline timeline = withUnpipelined("gpipe", 2, 1, 2);
  Timeline wrong = timeline;
  for (Action &action : wrong.ranks[0])
    if (action.chunk == 2)
      action.microbatch = 1;
  EXPECT_NE(
      verified(wrong).find("2F1: microbatch 1 of chunk 2 belongs to rank 1"),
      std::string::npos);
  wrong = timeline;
  std::erase_if(wrong.ranks[1], [](const Action &a) { return a.chunk == 2; });
  EXPECT_EQ(
      verified(wrong),
      "rank 1, 2F1: missing: each chunk runs F once for each microbatch\n"
      "rank 1, 2B1: missing: each chunk runs B, or I and W, once for each "
      "microbatch\n");
  // The backward of the last pipelined chunk waits for the unpipelined one's.
  EXPECT_EQ(verified(parsed("0F0,0F1,2F0,2B0,0B0,0B1\n"
                            "1F0,1F1,1B0,1B1,2F1,2B1\n")),
            "rank 1, position 3, 1B1: expected it after 2B1, which is at "
            "position 5\n");
}

} // namespace
