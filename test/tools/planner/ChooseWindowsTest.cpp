// SPDX-License-Identifier: Apache-2.0
//
// Chunks of a single stage and the mode of gathers, as the planner takes them.
#include "tools/planner/ChooseWindows.h"
#include "tools/planner/ComparePolicies.h"

#include "gtest/gtest.h"

using namespace rota;

namespace {

/// Llama 3.1 8B, which has 32 layers, on eight ranks.
PlanRequest requestOf(const std::string &mesh) {
  PlanRequest request;
  CompilerOptions &compiler = request.compiler;
  compiler.model = ROTA_SOURCE_DIR "/models/configs/llama-3.1-8b";
  compiler.build.sequences = 64;
  compiler.build.sequenceLength = 4096;
  compiler.shard.meshText = mesh;
  compiler.shard.optimizer = "adamw";
  compiler.schedule.schedule = "circular";
  compiler.differentiate.remat = "full";
  request.chooseRepeats = true;
  return request;
}

std::vector<int64_t> chosenLayers(const PlanRequest &request) {
  const auto &layers = request.compiler.schedule.layersPerStage;
  return {layers.begin(), layers.end()};
}

TEST(ChooseRepeats, AChunkForEachLayerHidesTheGathers) {
  PlanRequest request = requestOf("fsdp=8");
  PolicyPlan whole, divided;
  planPolicy(request, whole);
  chooseRepeats(request);
  planPolicy(request, divided);
  EXPECT_EQ(request.compiler.schedule.repeats, 34);
  std::vector<int64_t> layers(34, 1);
  layers.front() = layers.back() = 0; // the embedding, the loss
  EXPECT_EQ(chosenLayers(request), layers);
  EXPECT_LT(divided.time.timeline, whole.time.timeline);
  // 45 GiB of windows become less than 4.
  EXPECT_GT(whole.peakBytes - divided.peakBytes, int64_t(41) << 30);
}

/// Where each microbatch ends before the next one begins, several chunks gather
/// each weight for each microbatch. Their work hides that only if it is long.
TEST(ChooseRepeats, OneChunkWhereNothingHidesTheGathers) {
  PlanRequest request = requestOf("fsdp=8");
  request.compiler.build.sequences = 8;
  request.compiler.build.sequenceLength = 1;
  request.compiler.schedule.schedule = "1f1b";
  request.compiler.schedule.microbatches = 8;
  chooseRepeats(request);
  EXPECT_LE(request.compiler.schedule.repeats, 1);
  EXPECT_TRUE(chosenLayers(request).empty());
  request.compiler.build.sequenceLength = 4096;
  chooseRepeats(request);
  EXPECT_GE(request.compiler.schedule.repeats, 32);
}

/// Nothing is chosen for what cannot be planned; its error comes later.
TEST(ChooseRepeats, NothingWithoutAModel) {
  PlanRequest request = requestOf("fsdp=8");
  request.compiler.model = "none";
  chooseRepeats(request);
  EXPECT_EQ(request.compiler.schedule.repeats, 0);
}

/// Two stages with a chunk each.
PlanRequest pipelineRequest() {
  PlanRequest request = requestOf("fsdp=4,stage=2");
  request.compiler.build.sequences = 4;
  request.compiler.schedule.stages = 2;
  request.compiler.schedule.microbatches = 16;
  request.compiler.schedule.schedule = "1f1b";
  return request;
}

TEST(ChooseGathers, TakeTheModeThatMovesLeastOfEqualSteps) {
  PlanRequest request = pipelineRequest();
  request.compiler.memory = int64_t(1) << 50;
  chooseGathers(request);
  EXPECT_EQ(request.compiler.complete.mode, pipe::GatherMode::Once);
}

TEST(ChooseGathers, KeepWithinTheMemory) {
  PlanRequest request = pipelineRequest();
  request.compiler.memory = int64_t(30) << 30;
  chooseGathers(request);
  EXPECT_EQ(request.compiler.complete.mode, pipe::GatherMode::PerLayer);
  PolicyPlan plan;
  planPolicy(request, plan);
  for (const StageNeed &need : plan.stages)
    EXPECT_LE(need.bytes, request.compiler.memory);
}

/// With few tokens a step is as long as its gathers, and `once` hides none.
TEST(ChooseGathers, TakeTheShorterStep) {
  PlanRequest request = pipelineRequest();
  request.compiler.schedule.microbatches = 2;
  request.compiler.build.sequenceLength = 128;
  PolicyPlan once;
  request.compiler.complete.mode = pipe::GatherMode::Once;
  planPolicy(request, once);
  chooseGathers(request);
  EXPECT_EQ(request.compiler.complete.mode, pipe::GatherMode::Once)
      << "bits depend on no schedule where memory has no bound";
  request.compiler.memory = int64_t(1) << 50;
  chooseGathers(request);
  EXPECT_EQ(request.compiler.complete.mode, pipe::GatherMode::PerLayer);
  PolicyPlan chosen;
  planPolicy(request, chosen);
  EXPECT_LT(chosen.time.timeline, once.time.timeline);
}

} // namespace
