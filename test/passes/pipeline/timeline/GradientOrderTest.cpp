// SPDX-License-Identifier: Apache-2.0
//
// Names of the actions that add gradients in another order than the named
// schedules.
#include "passes/pipeline/timeline/GradientOrder.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "test/passes/pipeline/Examples.h"

using namespace rota::pipe;

namespace {

TEST(GradientOrder, ascendsInEverySchedule) {
  for (const Example &example : examples())
    EXPECT_EQ(reorderedGradients(example.timeline), "") << example.name;
}

TEST(GradientOrder, namesActionsAndChunks) {
  // LoopedBFS of torch.distributed.pipelining.
  EXPECT_EQ(reorderedGradients(parsed("0F0,0F1,2F0,2F1,2B1,2B0,0B1,0B0\n"
                                      "1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\n")),
            "B of chunks 0 to 3");
  EXPECT_EQ(reorderedGradients(parsed("0F0,0F1,2F0,2F1,2B1,2B0,0B0,0B1\n"
                                      "1F0,1F1,3F0,3F1,3B1,3B0,1B1,1B0\n")),
            "B of chunks 1 to 3");
  EXPECT_EQ(reorderedGradients(parsed("0F0,0F1,1F0,1F1,2F0,2F1,2B0,2B1,1B1,1B0,"
                                      "0B1,0B0\n")),
            "B of chunks 0, 1");
  // Input gradients of other chunks than the first are added to nothing.
  EXPECT_EQ(reorderedGradients(
                parsed("0F0,0F1,0I1,0I0,0W0,0W1\n1F0,1F1,1I1,1I0,1W0,1W1\n")),
            "I of chunk 0 (the embedding)");
  EXPECT_EQ(reorderedGradients(
                parsed("0F0,0F1,0I0,0I1,0W1,0W0\n1F0,1F1,1I0,1I1,1W0,1W1\n")),
            "W of chunk 0");
  // B adds to both gradients.
  EXPECT_EQ(reorderedGradients(parsed("0F0,0F1,0I1,0B0,0W1\n")),
            "B of chunk 0");
  EXPECT_EQ(reorderedGradients(parsed("0F0,0F1,0B1,0I0,0W0\n")),
            "I of chunk 0 (the embedding), W of chunk 0");
}

// The stages divide the layers outside of the pipeline, and each adds the
// gradients of its own microbatches as their activations come.
TEST(GradientOrder, ofUnpipelinedLayersIsThatOfActivations) {
  std::string error;
  auto whole = withUnpipelinedLayers(
      parsed("0F3,0F2,0B3,0F1,0B2,0F0,0B1,0B0\n1F3,1B3,1F2,1B2,1F1,1B1,1F0,"
             "1B0\n"),
      error);
  ASSERT_TRUE(whole) << error;
  EXPECT_EQ(verified(*whole), "");
  EXPECT_EQ(reorderedGradients(*whole), "B of chunks 0 to 2");
  whole = withUnpipelinedLayers(parsed("0F0,0F1,0F2,0F3,0B3,0B2,0B1,0B0\n"
                                       "1F0,1F1,1F2,1F3,1B3,1B2,1B1,1B0\n"),
                                error);
  ASSERT_TRUE(whole) << error;
  EXPECT_EQ(reorderedGradients(*whole), "B of chunks 0, 1");
}

} // namespace
