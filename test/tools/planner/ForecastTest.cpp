// SPDX-License-Identifier: Apache-2.0
//
// A plan on a machine in numbers, and a whole run.
#include "tools/planner/Forecast.h"
#include "tools/planner/Machines.h"
#include "tools/planner/Planner.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace rota;

namespace {

/// Llama 3.1 8B, 8 sequences an accumulation step, on eight ranks.
Forecast forecastOf(const std::string &machine, const std::string &mesh,
                    int64_t accumulate = 1) {
  std::string error;
  PlanRequest request;
  CompilerOptions &compiler = request.compiler;
  compiler.model = ROTA_SOURCE_DIR "/models/configs/llama-3.1-8b";
  compiler.build.sequences = 8;
  compiler.build.sequenceLength = 4096;
  compiler.build.compute = mlir::rota::ComputeType::BF16;
  compiler.shard.meshText = mesh;
  compiler.shard.optimizer = "adamw";
  compiler.schedule.schedule = "circular";
  compiler.accumulationSteps = accumulate;
  compiler.machine = findMachine(machine, error)->machine;
  mlir::DialectRegistry registry;
  mlir::rota::registerModelDialects(registry);
  mlir::MLIRContext context(registry);
  PlanAnswer answer;
  EXPECT_EQ(makePlan(context, request, answer, error), kExitSuccess) << error;
  return forecast(answer.plan, /*hasBarrier=*/true);
}

TEST(Forecast, UtilizationIsThatOfTheModelsOperations) {
  Forecast step = forecastOf("h100-sxm-80gb", "sequence=8");
  EXPECT_EQ(step.devices, 8);
  EXPECT_EQ(step.tokens, 8 * 4096);
  EXPECT_DOUBLE_EQ(step.peak, 8 * 989.4e12);
  EXPECT_DOUBLE_EQ(step.mfu(), step.flopsPerToken * step.tokens /
                                   step.stepSeconds / step.peak);
  EXPECT_GT(step.mfu(), 0.3);
  EXPECT_LT(step.mfu(), 0.6);
  // Pairs that causal attention does not see are operations, too.
  EXPECT_GT(step.fullMfu(), 1.02 * step.mfu());
}

TEST(Forecast, SlowerMachinesTakeLonger) {
  EXPECT_GT(forecastOf("a100-sxm-80gb", "sequence=8").stepSeconds,
            1.5 * forecastOf("h100-sxm-80gb", "sequence=8").stepSeconds);
}

/// Ranks that are nodes apart send over the slower level.
TEST(Forecast, ANetworkThatIsSlowIsWaitedFor) {
  auto exposed = [](const Forecast &step) {
    double seconds = 0;
    for (const AxisTransfers &sum : step.transfers)
      seconds += sum.exposed;
    return seconds;
  };
  EXPECT_GT(exposed(forecastOf("h100-sxm-80gb", "sequence=16")),
            1.5 * exposed(forecastOf("h100-sxm-80gb", "sequence=8")));
}

TEST(Forecast, UpdatesAreExchangedOnceInAllAccumulationSteps) {
  Forecast one = forecastOf("h100-sxm-80gb", "data=8");
  Forecast four = forecastOf("h100-sxm-80gb", "data=8", 4);
  EXPECT_EQ(four.tokens, 4 * one.tokens);
  EXPECT_LT(four.stepSeconds, 4 * one.stepSeconds);
  EXPECT_LE(four.time.earlier, four.time.timeline);
  EXPECT_DOUBLE_EQ(four.stepSeconds, 3 * four.time.earlier +
                                         four.time.timeline +
                                         four.time.exchange + four.time.update);
}

TEST(Campaign, CheckpointsAreWrittenAtTheBestInterval) {
  Forecast step;
  step.devices = 1000;
  step.stepSeconds = 10;
  step.tokens = 1e6;
  CampaignRequest request{1e12, 2.5, 50000, 1e10};
  Campaign run = *campaign(step, 1e12, request);
  EXPECT_DOUBLE_EQ(run.checkpointSeconds, 100);
  double between = 50000 * 3600 / 1000.0;
  auto goodput = [&](double interval) {
    return interval / (between * std::exp(100 / between) *
                       std::expm1((interval + 100) / between));
  };
  EXPECT_DOUBLE_EQ(run.goodput, goodput(run.interval));
  EXPECT_GT(run.goodput, goodput(0.95 * run.interval));
  EXPECT_GT(run.goodput, goodput(1.05 * run.interval));
  EXPECT_DOUBLE_EQ(run.seconds, 1e12 / 1e5 / run.goodput);
  EXPECT_DOUBLE_EQ(run.deviceHours, run.seconds / 3600 * 1000);
  EXPECT_DOUBLE_EQ(run.cost, 2.5 * run.deviceHours);
}

TEST(Campaign, NothingIsSaidWhereNothingIsAsked) {
  EXPECT_FALSE(campaign(Forecast(), 1e12, {}));
}

} // namespace
