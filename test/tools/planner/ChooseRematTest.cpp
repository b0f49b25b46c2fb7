// SPDX-License-Identifier: Apache-2.0
//
// `--remat auto` for chunks: plans of mixed policies are those of the compiler,
// and no other combination of policies that fits has a shorter step.
#include "tools/planner/ChooseRemat.h"
#include "tools/planner/SearchRemat.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <set>

using namespace rota;

namespace {

using Strings = std::vector<std::string>;

/// An example with eight layers on two stages, four microbatches each.
PlanRequest exampleRequest(int repeats, const std::string &schedule) {
  PlanRequest request;
  CompilerOptions &compiler = request.compiler;
  compiler.model = ROTA_SOURCE_DIR "/models/examples/two-kinds.mlir";
  compiler.shard.meshText = "stage=2";
  compiler.shard.optimizer = "adamw";
  compiler.schedule.stages = 2;
  compiler.schedule.repeats = repeats;
  compiler.schedule.microbatches = 4;
  compiler.schedule.schedule = schedule;
  return request;
}

/// Two stages with two chunks each.
PlanRequest requestOfFour() { return exampleRequest(2, "interleaved-1f1b"); }

PlanRequest vShapedRequest() {
  PlanRequest request = exampleRequest(2, "gpipe");
  request.compiler.schedule.microbatches = 3;
  request.compiler.schedule.placement = pipe::Placement::V;
  return request;
}

PlanRequest zeroBubbleRequest() {
  PlanRequest request = exampleRequest(2, "zbv");
  request.compiler.schedule.microbatches = 6;
  request.compiler.schedule.placement = pipe::Placement::V;
  return request;
}

PlanRequest shardedRequest() {
  PlanRequest request = exampleRequest(2, "circular");
  request.compiler.shard.meshText = "fsdp=2,stage=2";
  request.compiler.complete.mode = pipe::GatherMode::PerRepeat;
  return request;
}

PlanRequest unpipelinedRequest(const std::string &schedule) {
  PlanRequest request = exampleRequest(2, schedule);
  request.compiler.schedule.pipelineLayers = 4;
  return request;
}

PlanRequest simtRequest() {
  PlanRequest request = exampleRequest(2, "circular");
  request.compiler.target.device = DeviceKind::Simt;
  return request;
}

PlanRequest expertsRequest() {
  PlanRequest request = exampleRequest(2, "circular");
  request.compiler.model = ROTA_SOURCE_DIR "/models/configs/tiny-moe";
  request.compiler.build.sequences = 2;
  request.compiler.build.sequenceLength = 16;
  request.compiler.build.routers.balance = 0.01;
  return request;
}

PolicyPlan planOf(PlanRequest request, const std::string &policy) {
  PolicyPlan plan;
  request.compiler.setRemat(policy);
  planPolicy(request, plan);
  EXPECT_EQ(plan.error, "") << policy;
  return plan;
}

std::vector<PolicyPlan> plansOf(const PlanRequest &request,
                                const Strings &policies) {
  std::vector<PolicyPlan> rows;
  for (const std::string &policy : policies)
    rows.push_back(planOf(request, policy));
  return rows;
}

MixedPlans mixedPlans(const std::vector<PolicyPlan> &rows) {
  std::vector<const PolicyParts *> parts;
  for (const PolicyPlan &row : rows)
    parts.push_back(row.parts.get());
  return MixedPlans(std::move(parts));
}

std::vector<int64_t> bytesOf(const PolicyPlan &plan) {
  std::vector<int64_t> bytes;
  for (const StageNeed &need : plan.stages)
    bytes.push_back(need.bytes);
  return bytes;
}

int64_t mostBytes(const PolicyPlan &plan) {
  std::vector<int64_t> bytes = bytesOf(plan);
  return *std::max_element(bytes.begin(), bytes.end());
}

/// "none;chunk0:full;chunk1:none": the policies of all chunks.
std::string textOf(const std::vector<int> &chosen, const Strings &policies) {
  std::string text = "none";
  for (size_t chunk = 0; chunk < chosen.size(); ++chunk)
    text += ";chunk" + std::to_string(chunk) + ":" + policies[chosen[chunk]];
  return text;
}

class MixedPlansOf : public ::testing::TestWithParam<PlanRequest> {};

TEST_P(MixedPlansOf, AreThoseOfTheCompiler) {
  const Strings policies = {"none", "save_out_proj", "minimal_offloaded",
                            "full"};
  std::vector<PolicyPlan> rows = plansOf(GetParam(), policies);
  MixedPlans mixed = mixedPlans(rows);
  std::set<std::vector<int64_t>> seen;
  for (std::vector<int> chosen : {std::vector<int>{0, 3, 3, 0, 1},
                                  {3, 0, 1, 1, 3},
                                  {1, 2, 0, 3, 0},
                                  {2, 0, 3, 2, 2}}) {
    chosen.resize(mixed.shape().chunks());
    std::string text = textOf(chosen, policies);
    PolicyPlan plan = planOf(GetParam(), text);
    EXPECT_EQ(mixed.bytes(chosen), bytesOf(plan)) << text;
    EXPECT_EQ(mixed.step(chosen), plan.time.timeline) << text;
    seen.insert(bytesOf(plan));
  }
  EXPECT_EQ(seen.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(Pipelines, MixedPlansOf,
                         ::testing::Values(requestOfFour(), vShapedRequest(),
                                           zeroBubbleRequest(),
                                           shardedRequest(),
                                           unpipelinedRequest("circular"),
                                           simtRequest(), expertsRequest()));

RematChoice choose(const PlanRequest &request,
                   const std::vector<PolicyPlan> &rows) {
  std::string error;
  auto choice = chooseRemat(request, rows, error);
  EXPECT_TRUE(choice.has_value()) << error;
  return choice.value_or(RematChoice());
}

/// A choice for four chunks of two stages, and for unpipelined layers.
struct Combination {
  int64_t bytes = 0; // bytes of the stage that takes most
  double step = 0;
  bool isOfStages = false; // chunks 0 and 2 agree, and so do 1 and 3
};

/// All of them.
std::vector<Combination> combinationsOf(MixedPlans &plans) {
  std::vector<Combination> all;
  size_t chunks = plans.shape().chunks();
  std::vector<int> chosen(chunks);
  for (bool goesOn = true; goesOn;) {
    std::vector<int64_t> bytes = plans.bytes(chosen);
    all.push_back({*std::max_element(bytes.begin(), bytes.end()),
                   plans.step(chosen),
                   chosen[0] == chosen[2] && chosen[1] == chosen[3]});
    size_t digit = 0; // digit of the number that `chosen` is
    while (digit < chunks && ++chosen[digit] == plans.policies())
      chosen[digit++] = 0;
    goesOn = digit < chunks;
  }
  return all;
}

/// The shortest step of those that fit.
double leastStep(const std::vector<Combination> &all, int64_t memory,
                 bool ofStages) {
  double step = std::numeric_limits<double>::infinity();
  for (const Combination &one : all)
    if (one.bytes <= memory && (!ofStages || one.isOfStages))
      step = std::min(step, one.step);
  return step;
}

/// Bounds from what the policy that keeps nothing takes to what the one that
/// keeps everything takes. Returns how often chunks pay.
int expectBest(PlanRequest request, const Strings &policies, int bounds) {
  std::vector<PolicyPlan> rows = plansOf(request, policies);
  int64_t &memory = request.compiler.memory;
  MixedPlans mixed = mixedPlans(rows);
  std::vector<Combination> all = combinationsOf(mixed);
  int64_t least = mostBytes(rows.back()), most = mostBytes(rows.front());
  int shorter = 0;
  for (int part = 0; part <= bounds; ++part) {
    memory = least + (most - least) * part / bounds;
    RematChoice choice = choose(request, rows);
    EXPECT_LE(mostBytes(choice.plan), memory) << choice.plan.policy;
    EXPECT_EQ(choice.plan.time.timeline,
              leastStep(all, memory, /*ofStages=*/false))
        << part << ": " << choice.plan.policy;
    shorter +=
        choice.plan.time.timeline < leastStep(all, memory, /*ofStages=*/true);
  }
  return shorter;
}

TEST(ChooseRemat, IsTheBestOfAllCombinations) {
  int shorter = expectBest(
      requestOfFour(), {"none", "save_qkv_proj", "minimal_offloaded", "full"},
      /*bounds=*/8);
  EXPECT_GT(shorter, 2);
}

TEST(ChooseRemat, IsTheBestOfAllCombinationsWithUnpipelinedLayers) {
  expectBest(unpipelinedRequest("interleaved-1f1b"),
             {"none", "save_qkv_proj", "full"}, /*bounds=*/4);
}

TEST(ChooseRemat, TakesManyChunksOneByOne) {
  PlanRequest request = exampleRequest(4, "interleaved-1f1b");
  int64_t &memory = request.compiler.memory;
  const Strings policies = {
      "none",          "minimal_with_context", "save_qkv_proj",
      "save_out_proj", "minimal_offloaded",    "full"};
  std::vector<PolicyPlan> rows = plansOf(request, policies);
  int64_t least = mostBytes(rows.back()), most = mostBytes(rows.front());
  int mixed = 0; // choices with several policies on a stage
  for (int part = 1; part < 8; ++part) {
    memory = least + (most - least) * part / 8;
    RematChoice choice = choose(request, rows);
    EXPECT_LE(mostBytes(choice.plan), memory);
    for (const PolicyPlan &row : rows)
      if (mostBytes(row) <= memory)
        EXPECT_LE(choice.plan.time.timeline, row.time.timeline) << row.policy;
    mixed += choice.plan.policy.find("chunk") != std::string::npos;
  }
  EXPECT_GT(mixed, 2);
}

TEST(ChooseRemat, NamesPolicyAndCostOfEachChunk) {
  PlanRequest request = requestOfFour();
  int64_t &memory = request.compiler.memory;
  std::vector<PolicyPlan> rows = plansOf(request, {"none", "full"});
  MixedPlans mixed = mixedPlans(rows);
  // Room for one chunk of stage 0 without recomputation, and all of stage 1.
  memory =
      std::max({mixed.bytes({0, 0, 1, 0})[0], mixed.bytes({0, 0, 1, 0})[1]});
  ASSERT_GT(mixed.bytes({0, 0, 0, 0})[0], memory);
  RematChoice choice = choose(request, rows);
  ASSERT_FALSE(choice.policyOf(0).has_value()) << choice.plan.policy;
  EXPECT_EQ(choice.policyOf(1), "none");
  std::string text = describeChoice(choice, "some bytes");
  EXPECT_NE(text.find("of each chunk:\n"), std::string::npos) << text;
  EXPECT_NE(text.find("chunk 0"), std::string::npos) << text;
  EXPECT_NE(text.find("chunk 2"), std::string::npos) << text;
  EXPECT_EQ(text.find("chunk 1"), std::string::npos) << text;
  for (int chunk : {0, 2}) {
    bool isFull = choice.policies[chunk] == "full";
    const ChunkNeed &need = choice.plan.chunks[chunk];
    const ChunkNeed &row = rows[isFull].chunks[chunk];
    EXPECT_EQ(need.stage, 0);
    EXPECT_EQ(need.bytes, row.bytes);
    EXPECT_EQ(need.seconds, row.seconds);
    EXPECT_EQ(choice.fastestChunks[chunk], rows[0].chunks[chunk].seconds);
  }
  EXPECT_LT(rows[1].chunks[0].bytes, rows[0].chunks[0].bytes);
  EXPECT_GT(rows[1].chunks[0].seconds, rows[0].chunks[0].seconds);
}

} // namespace
