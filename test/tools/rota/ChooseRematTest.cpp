// SPDX-License-Identifier: Apache-2.0
//
// `--remat auto` for chunks: plans of mixed policies are those of the compiler,
// and no other combination of policies that fits has a shorter step.
#include "tools/rota/ChooseRemat.h"
#include "tools/rota/SearchRemat.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <limits>
#include <set>

using namespace rota;

namespace {

using Strings = std::vector<std::string>;

/// Options of `rota plan` for an example, if `pipeline` names no other model.
RunOptions planOptions(const Strings &pipeline) {
  Strings arguments;
  if (pipeline.front() != "--model")
    arguments = {"--model", ROTA_SOURCE_DIR "/models/examples/two-kinds.mlir"};
  arguments.insert(arguments.end(), pipeline.begin(), pipeline.end());
  std::vector<const char *> pointers;
  for (const std::string &argument : arguments)
    pointers.push_back(argument.c_str());
  RunOptions options;
  EXPECT_FALSE(parseRunOptions(Command::Plan, int(pointers.size()),
                               pointers.data(), options));
  return options;
}

PolicyPlan planOf(RunOptions options, const std::string &policy) {
  PolicyPlan plan;
  options.remat = policy;
  planPolicy(options, plan);
  EXPECT_EQ(plan.error, "") << policy;
  return plan;
}

std::vector<PolicyPlan> plansOf(const RunOptions &options,
                                const Strings &policies) {
  std::vector<PolicyPlan> rows;
  for (const std::string &policy : policies)
    rows.push_back(planOf(options, policy));
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

class MixedPlansOf : public ::testing::TestWithParam<Strings> {};

TEST_P(MixedPlansOf, AreThoseOfTheCompiler) {
  const Strings policies = {"none", "save_out_proj", "minimal_offloaded",
                            "full"};
  RunOptions options = planOptions(GetParam());
  std::vector<PolicyPlan> rows = plansOf(options, policies);
  MixedPlans mixed = mixedPlans(rows);
  std::set<std::vector<int64_t>> seen;
  for (std::vector<int> chosen : {std::vector<int>{0, 3, 3, 0, 1},
                                  {3, 0, 1, 1, 3},
                                  {1, 2, 0, 3, 0},
                                  {2, 0, 3, 2, 2}}) {
    chosen.resize(mixed.shape().chunks());
    std::string text = textOf(chosen, policies);
    PolicyPlan plan = planOf(options, text);
    EXPECT_EQ(mixed.bytes(chosen), bytesOf(plan)) << text;
    EXPECT_EQ(mixed.step(chosen), plan.step) << text;
    seen.insert(bytesOf(plan));
  }
  EXPECT_EQ(seen.size(), 4u);
}

INSTANTIATE_TEST_SUITE_P(
    Pipelines, MixedPlansOf,
    ::testing::Values(
        Strings{"--mesh", "stage=2", "--repeats", "2", "--microbatches", "4",
                "--schedule", "interleaved-1f1b"},
        Strings{"--mesh", "stage=2", "--repeats", "2", "--microbatches", "3",
                "--schedule", "gpipe", "--placement", "v"},
        Strings{"--mesh", "stage=2", "--microbatches", "6", "--schedule",
                "zbv"},
        Strings{"--mesh", "fsdp=2,stage=2", "--repeats", "2", "--microbatches",
                "4", "--weight-gather", "per-repeat"},
        Strings{"--mesh", "stage=2", "--repeats", "2", "--microbatches", "4",
                "--pipeline-layers", "4"},
        Strings{"--mesh", "stage=2", "--repeats", "2", "--microbatches", "4",
                "--device", "simt"},
        Strings{"--model", ROTA_SOURCE_DIR "/models/configs/tiny-moe",
                "--batch-size", "8", "--sequence-length", "16", "--mesh",
                "stage=2", "--repeats", "2", "--microbatches", "4",
                "--load-balance-loss", "0.01"}));

/// Two stages with two chunks each.
const Strings pipelineOfFour = {"--mesh",     "stage=2",         "--repeats",
                                "2",          "--microbatches",  "4",
                                "--schedule", "interleaved-1f1b"};

RematChoice choose(const RunOptions &options,
                   const std::vector<PolicyPlan> &rows) {
  std::string error;
  auto choice = chooseRemat(options, rows, error);
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
int expectBest(const Strings &pipeline, const Strings &policies, int bounds) {
  RunOptions options = planOptions(pipeline);
  std::vector<PolicyPlan> rows = plansOf(options, policies);
  MixedPlans mixed = mixedPlans(rows);
  std::vector<Combination> all = combinationsOf(mixed);
  int64_t least = mostBytes(rows.back()), most = mostBytes(rows.front());
  int shorter = 0;
  for (int part = 0; part <= bounds; ++part) {
    options.memory = least + (most - least) * part / bounds;
    RematChoice choice = choose(options, rows);
    EXPECT_LE(mostBytes(choice.plan), options.memory) << choice.plan.policy;
    EXPECT_EQ(choice.plan.step,
              leastStep(all, options.memory, /*ofStages=*/false))
        << part << ": " << choice.plan.policy;
    shorter +=
        choice.plan.step < leastStep(all, options.memory, /*ofStages=*/true);
  }
  return shorter;
}

TEST(ChooseRemat, IsTheBestOfAllCombinations) {
  int shorter = expectBest(
      pipelineOfFour, {"none", "save_qkv_proj", "minimal_offloaded", "full"},
      /*bounds=*/8);
  EXPECT_GT(shorter, 2);
}

TEST(ChooseRemat, IsTheBestOfAllCombinationsWithUnpipelinedLayers) {
  Strings pipeline = pipelineOfFour;
  pipeline.insert(pipeline.end(), {"--pipeline-layers", "4"});
  expectBest(pipeline, {"none", "save_qkv_proj", "full"}, /*bounds=*/4);
}

TEST(ChooseRemat, TakesManyChunksOneByOne) {
  RunOptions options =
      planOptions({"--mesh", "stage=2", "--repeats", "4", "--microbatches", "4",
                   "--schedule", "interleaved-1f1b"});
  const Strings policies = {
      "none",          "minimal_with_context", "save_qkv_proj",
      "save_out_proj", "minimal_offloaded",    "full"};
  std::vector<PolicyPlan> rows = plansOf(options, policies);
  int64_t least = mostBytes(rows.back()), most = mostBytes(rows.front());
  int mixed = 0; // choices with several policies on a stage
  for (int part = 1; part < 8; ++part) {
    options.memory = least + (most - least) * part / 8;
    RematChoice choice = choose(options, rows);
    EXPECT_LE(mostBytes(choice.plan), options.memory);
    for (const PolicyPlan &row : rows)
      if (mostBytes(row) <= options.memory)
        EXPECT_LE(choice.plan.step, row.step) << row.policy;
    mixed += choice.plan.policy.find("chunk") != std::string::npos;
  }
  EXPECT_GT(mixed, 2);
}

TEST(ChooseRemat, NamesPolicyAndCostOfEachChunk) {
  RunOptions options = planOptions(pipelineOfFour);
  std::vector<PolicyPlan> rows = plansOf(options, {"none", "full"});
  MixedPlans mixed = mixedPlans(rows);
  // Room for one chunk of stage 0 without recomputation, and all of stage 1.
  options.memory =
      std::max({mixed.bytes({0, 0, 1, 0})[0], mixed.bytes({0, 0, 1, 0})[1]});
  ASSERT_GT(mixed.bytes({0, 0, 0, 0})[0], options.memory);
  options.memoryText = "some bytes";
  RematChoice choice = choose(options, rows);
  ASSERT_FALSE(choice.policyOf(0).has_value()) << choice.plan.policy;
  EXPECT_EQ(choice.policyOf(1), "none");
  std::string text = describeChoice(choice, options);
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
