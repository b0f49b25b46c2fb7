// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/MetricsFolder.h"
#include "runtime/Error.h"
#include "runtime/metrics/Utilization.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace rota;
using namespace rota::test;
using nlohmann::json;

namespace {

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

} // namespace

TEST(MetricsFolder, AppendsALineForEachStep) {
  TemporaryFolder folder;
  {
    MetricsFolder metrics(folder.path(""));
    EXPECT_EQ(metrics.addStep(1, {{"loss", "loss/train", 2.5}}), "");
    // Each line is in the file at once.
    EXPECT_EQ(linesOf(folder.read("metrics.jsonl")).size(), 1u);
  }
  MetricsFolder metrics(folder.path(""));
  EXPECT_EQ(metrics.addStep(2, {{"loss", "loss/train", 0.1}}), "");
  std::vector<std::string> lines = linesOf(folder.read("metrics.jsonl"));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(json::parse(lines[0]), (json{{"step", 1}, {"loss", 2.5}}));
  EXPECT_EQ(json::parse(lines[1]), (json{{"step", 2}, {"loss", 0.1}}));
}

// The process before was killed while it wrote.
TEST(MetricsFolder, EndsALineThatWasCut) {
  TemporaryFolder folder;
  folder.write("metrics.jsonl", "{\"step\":1}\n{\"step\":2,\"lo");
  MetricsFolder metrics(folder.path(""));
  EXPECT_EQ(metrics.addStep(2, {}), "");
  EXPECT_EQ(folder.read("metrics.jsonl"),
            "{\"step\":1}\n{\"step\":2,\"lo\n{\"step\":2}\n");
}

TEST(MetricsFolder, AFullDiskIsAWarningAndTheFirstOneOnly) {
  TemporaryFolder folder;
  std::filesystem::create_symlink("/dev/full", folder.path("metrics.jsonl"));
  MetricsFolder metrics(folder.path(""));
  EXPECT_EQ(metrics.addStep(1, {}),
            "cannot write '" + folder.path("metrics.jsonl") +
                "': No space left on device; the run goes on without the "
                "numbers of this step");
  EXPECT_EQ(metrics.addStep(2, {}), "");
}

TEST(MetricsFolder, IsRefusedBeforeTheRunWhereNothingCanBeWritten) {
  TemporaryFolder folder;
  std::string file = folder.write("file", "");
  EXPECT_EQ(messageOf<InputError>([&] { prepareMetricsFolder(file + "/run"); }),
            "cannot make folder '" + file + "/run': Not a directory");
  prepareMetricsFolder(folder.path("a/b"));
  EXPECT_EQ(folder.read("a/b/metrics.jsonl"), "");
  std::filesystem::create_directories(folder.path("c/metrics.jsonl"));
  EXPECT_EQ(
      messageOf<InputError>([&] { prepareMetricsFolder(folder.path("c")); }),
      "cannot open '" + folder.path("c/metrics.jsonl") + "': Is a directory");
}

TEST(Utilization, IsTheModelsOperationsOverThePeak) {
  Program program;
  program.flopsPerToken = 6e9;
  EXPECT_DOUBLE_EQ(modelFlopsUtilization(program, 50000, 1e15), 0.3);
}

TEST(Utilization, KnowsThePeakOfSomeGpus) {
  EXPECT_EQ(knownPeakFlops("NVIDIA H100 80GB HBM3", Arithmetic::BF16),
            989.4e12);
  EXPECT_EQ(knownPeakFlops("NVIDIA A100-SXM4-80GB", Arithmetic::TF32), 156e12);
  EXPECT_FALSE(knownPeakFlops("cpu", Arithmetic::F32));
}

TEST(Utilization, CountsTheArithmeticOfMostParameters) {
  Program program;
  EXPECT_EQ(arithmeticOf(program, false), Arithmetic::F32);
  EXPECT_EQ(arithmeticOf(program, true), Arithmetic::TF32);
  program.parameters.resize(2);
  program.parameters[0].shape = {100};
  program.parameters[1].shape = {60};
  program.parameters[1].layers = {0, 1};
  program.parameters[1].compute = ElementType::BF16;
  EXPECT_EQ(arithmeticOf(program, false), Arithmetic::BF16);
}
