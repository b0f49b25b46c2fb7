// SPDX-License-Identifier: Apache-2.0
//
// Plans of chunks with several policies are those of the compiler.
#include "tools/rota/ComparePolicies.h"

#include "gtest/gtest.h"

#include <set>

using namespace rota;

namespace {

using Strings = std::vector<std::string>;

/// Options of `rota plan` for the model of two kinds of layer.
RunOptions planOptions(const Strings &pipeline) {
  Strings arguments = {"--model",
                       ROTA_SOURCE_DIR "/models/examples/two-kinds.mlir"};
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
                "--device", "simt"}));

} // namespace
