// SPDX-License-Identifier: Apache-2.0
//
// Alternatives to a plan over its memory, the names of what it holds, and its
// memory over time.
#include "tools/planner/WhatFits.h"
#include "tools/planner/ComparePolicies.h"
#include "tools/planner/MemoryCurve.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>

using namespace rota;

namespace {

/// A Llama on two stages and two ranks of data, 4 microbatches of 4 sequences.
PlanRequest exampleRequest() {
  PlanRequest request;
  CompilerOptions &compiler = request.compiler;
  compiler.model = ROTA_SOURCE_DIR "/models/configs/tiny";
  compiler.build.sequences = 4;
  compiler.build.sequenceLength = 64;
  compiler.shard.meshText = "data=2,stage=2";
  compiler.shard.optimizer = "adamw";
  compiler.schedule.stages = 2;
  compiler.schedule.repeats = 1;
  compiler.schedule.microbatches = 4;
  compiler.schedule.schedule = "gpipe";
  compiler.differentiate.remat = "none";
  return request;
}

std::string textOf(const Alternative &one) {
  std::string text;
  for (const Setting &setting : one.settings)
    text += (setting.isDropped ? "-" : "") + setting.option + "=" +
            setting.value + " ";
  return text;
}

int64_t bytesOf(const PlanRequest &request) {
  PolicyPlan plan;
  planPolicy(request, plan);
  int64_t most = 0;
  for (const StageNeed &need : plan.stages)
    most = std::max(most, need.bytes);
  return most;
}

WhatFits fitsOf(PlanRequest request, int64_t memory) {
  request.compiler.memory = memory;
  std::string error;
  std::optional<WhatFits> fits = whatFits(request, error);
  EXPECT_TRUE(fits.has_value()) << error;
  return fits ? std::move(*fits) : WhatFits();
}

/// What fits a byte less than the example takes.
const WhatFits &looseFits() {
  static const WhatFits fits =
      fitsOf(exampleRequest(), bytesOf(exampleRequest()) - 1);
  return fits;
}

const Alternative *find(const std::vector<Alternative> &all,
                        const std::string &text) {
  auto found = std::find_if(all.begin(), all.end(), [&](const auto &one) {
    return textOf(one) == text;
  });
  return found == all.end() ? nullptr : &*found;
}

TEST(WhatFits, ListsEachSettingThatFits) {
  const WhatFits &fits = looseFits();
  int64_t bytes = bytesOf(exampleRequest());
  EXPECT_EQ(fits.asked.bytes, bytes);
  EXPECT_FALSE(fits.nearest.has_value());
  for (const char *text :
       {"remat=full ", "remat=auto ", "schedule=1f1b ",
        "shard-optimizer= ", "microbatches=8 ", "mesh=stage=2,fsdp=2 "})
    EXPECT_TRUE(find(fits.fitting, text)) << text;
  double last = 0;
  for (const Alternative &one : fits.fitting) {
    EXPECT_LT(one.bytes, bytes) << textOf(one);
    EXPECT_GE(one.seconds, last) << textOf(one);
    last = one.seconds;
  }
}

TEST(WhatFits, HasTheNumbersOfThePlan) {
  PlanRequest request = exampleRequest();
  const WhatFits &fits = looseFits();
  const Alternative *full = find(fits.fitting, "remat=full ");
  ASSERT_TRUE(full);
  request.compiler.setRemat("full");
  PolicyPlan plan;
  planPolicy(request, plan);
  EXPECT_EQ(full->bytes, bytesOf(request));
  EXPECT_EQ(full->seconds, plan.time.seconds());
  EXPECT_EQ(full->operations, plan.operations);
  EXPECT_GT(full->operations, fits.asked.operations);
}

TEST(WhatFits, JoinsSettingsWhereNoneIsEnough) {
  PlanRequest request = exampleRequest();
  int64_t least = looseFits().asked.bytes;
  for (const Alternative &one : looseFits().fitting)
    least = std::min(least, one.bytes);
  WhatFits joined = fitsOf(request, least - 1);
  ASSERT_FALSE(joined.fitting.empty());
  for (const Alternative &one : joined.fitting)
    EXPECT_GT(one.settings.size(), 1u) << textOf(one);
  WhatFits none = fitsOf(request, 1000);
  EXPECT_TRUE(none.fitting.empty());
  ASSERT_TRUE(none.nearest.has_value());
  EXPECT_LT(none.nearest->bytes, least);
}

TEST(WhatFits, IsNothingForWhatFitsOrHasNoPlan) {
  PlanRequest request = exampleRequest();
  std::string error;
  request.compiler.memory = bytesOf(request);
  EXPECT_FALSE(whatFits(request, error).has_value());
  EXPECT_EQ(error, "");
  request.compiler.schedule.microbatches = 3;
  request.compiler.schedule.schedule = "zbv";
  EXPECT_FALSE(whatFits(request, error).has_value());
  EXPECT_NE(error, "");
}

/// Requests whose arenas have all kinds of blocks.
std::vector<PlanRequest> variedRequests() {
  std::vector<PlanRequest> requests(5, exampleRequest());
  requests[1].compiler.shard.meshText = "fsdp=2,stage=2";
  requests[1].compiler.schedule.schedule = "1f1b";
  requests[2].compiler.differentiate.remat = "minimal_offloaded";
  requests[3].compiler.schedule.schedule = "zb1p";
  requests[4].compiler.shard.shardOptimizer = true;
  requests[4].compiler.build.compute = mlir::rota::ComputeType::BF16;
  return requests;
}

TEST(NamedUses, AddUpToTheRank) {
  for (const PlanRequest &request : variedRequests()) {
    std::string error;
    std::optional<Plan> plan = estimatePlan(request.compiler, error);
    ASSERT_TRUE(plan) << error;
    for (size_t stage = 0; stage < 2; ++stage) {
      int64_t sum = 0, unnamed = 0;
      for (const NamedUse &use : namedUses(*plan, stage)) {
        sum += use.bytes;
        if (use.name.ends_with("gaps and others"))
          unnamed += use.bytes;
      }
      EXPECT_EQ(sum, plan->program.stages[stage].arenaBytes) << stage;
      // Copies to host memory leave gaps between blocks.
      EXPECT_LT(unnamed, sum / 8) << stage;
    }
  }
}

TEST(MemoryCurve, ReachesWhatThePlanHolds) {
  for (const PlanRequest &request : variedRequests()) {
    std::string error;
    std::optional<Plan> plan = estimatePlan(request.compiler, error);
    ASSERT_TRUE(plan) << error;
    std::optional<SimulatedPlan> simulated = simulatePlan(*plan);
    ASSERT_TRUE(simulated);
    auto lives = blockLives(*plan);
    ASSERT_EQ(lives.size(), 2u);
    for (size_t stage = 0; stage < 2; ++stage) {
      MemoryCurve curve = memoryCurve(*plan, *simulated, lives[stage], stage);
      int64_t arena = plan->program.stages[stage].arenaBytes;
      int64_t most = 0;
      double time = 0;
      for (const MemoryCurve::Sample &sample : curve.samples) {
        EXPECT_GE(sample.seconds, time);
        time = sample.seconds;
        most = std::max(most, sample.total);
        EXPECT_EQ(std::accumulate(sample.bytes.begin(), sample.bytes.end(),
                                  int64_t(0)),
                  sample.total);
      }
      EXPECT_EQ(time, simulated->simulation.makespan);
      EXPECT_EQ(most, curve.samples[curve.peak].total);
      EXPECT_LE(most, arena);
      EXPECT_GT(most, arena * 9 / 10);
    }
  }
}

TEST(SimulatedPlan, HasTheStepOfTheEstimate) {
  PlanRequest request = exampleRequest();
  std::string error;
  std::optional<Plan> plan = estimatePlan(request.compiler, error);
  ASSERT_TRUE(plan) << error;
  std::optional<SimulatedPlan> simulated = simulatePlan(*plan);
  ASSERT_TRUE(simulated);
  PolicyPlan row;
  readPlan(request, *plan, row);
  EXPECT_EQ(simulated->simulation.makespan, row.time.timeline);
  // A message ends before its reader begins, and after it has been made.
  auto spanOf = [&](size_t stage, const std::string &name) {
    for (const TimedAction &timed : simulated->stages[stage])
      if (toString(timed.action) == name)
        return timed.span;
    return TimeSpan{-1, -1};
  };
  EXPECT_EQ(spanOf(0, "0SEND_F1").end, spanOf(1, "1RECV_F1").end);
  EXPECT_GE(spanOf(0, "0SEND_F1").start, spanOf(0, "0F1").end);
  EXPECT_LE(spanOf(1, "1RECV_F1").end, spanOf(1, "1F1").start);
  EXPECT_GT(spanOf(0, "0SEND_F1").end, spanOf(0, "0SEND_F1").start);
}

} // namespace
