// SPDX-License-Identifier: Apache-2.0
//
// The simulator of programs: when actions begin and end by given seconds.
#include "runtime/metrics/RunDescription.h"
#include "runtime/program/Verify.h"
#include "runtime/train/step/Bubble.h"
#include "test/runtime/TwoStageProgram.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace rota;
using namespace rota::test;

TEST(Clock, TakesTheLongestPath) {
  Program p = makeProgram();
  Clock clock;
  std::string error;
  ASSERT_TRUE(runClock(p, {{2.0, 0.0}, {0.0, 3.0}}, clock, error)) << error;
  EXPECT_EQ(clock.end[0][0], 2.0);
  EXPECT_EQ(clock.end[1][0], 2.0);
  EXPECT_EQ(clock.makespan, 5.0);
}

TEST(Clock, LetsMessagesTakeTheLatencyOfASend) {
  Program p = makeProgram();
  Clock clock;
  std::string error;
  ASSERT_TRUE(runClock(p, {{2.0, 0.5}, {0.0, 3.0}}, clock, error)) << error;
  EXPECT_EQ(clock.begin[1][0], 2.0);
  EXPECT_EQ(clock.end[1][0], 2.5);
  EXPECT_EQ(clock.makespan, 5.5);
  EXPECT_EQ(clock.exposed[1][size_t(ActionKind::RecvForward)], 0.5);
}

// Stage 0 needs nothing of stage 1, so steps follow one another by the slower
// stage; stage 0 is held up by its messages, which stage 1 takes late.
TEST(Clock, RunsStepsWithoutABarrier) {
  Program p = makeProgram();
  std::vector<std::vector<double>> seconds = {{2.0, 0.0}, {0.0, 3.0}};
  Clock clock;
  std::string error;
  ASSERT_TRUE(runClock(p, seconds, clock, error, {1.0, 4.0})) << error;
  EXPECT_EQ(clock.ends, (StepEnds{4.0, 7.0}));
  double step = 0.0;
  ASSERT_TRUE(runSteadyClock(p, seconds, step, error)) << error;
  EXPECT_EQ(step, 3.0);
  EXPECT_NEAR(measuredBubble(p, seconds, /*hasBarrier=*/true), 1.0 - 5.0 / 10.0,
              1e-12);
  EXPECT_NEAR(measuredBubble(p, seconds, /*hasBarrier=*/false), 1.0 - 5.0 / 6.0,
              1e-12);
  p.stages[0].templates[0].estimate = 2.0;
  p.stages[1].templates[1].estimate = 3.0;
  for (bool hasStepBarrier : {false, true}) {
    std::vector<Option> none;
    RunFacts facts{"cpu", "", 0, {}, 0.0, hasStepBarrier, none};
    EXPECT_EQ(nlohmann::json::parse(describeRun(p, facts))["planned_seconds"],
              hasStepBarrier ? 5.0 : 3.0);
  }
}

// Two gathers, one after the other, and two computations that read them: the
// second gather is hidden under the first computation.
TEST(Clock, RunsTransfersBesideComputing) {
  Program p;
  p.mesh = {{"stage", 1}};
  Stage &stage = p.stages.emplace_back();
  ActionTemplate gather, forward;
  gather.kind = ActionKind::Unshard;
  std::vector<int> first = {0}, second = {1};
  stage.addAction(gather, 0);
  stage.addAction(gather, 0);
  stage.addAction(forward, 0, first);
  stage.addAction(forward, 1, second);
  Clock clock;
  std::string error;
  ASSERT_TRUE(runClock(p, {{1, 1, 3, 3}}, clock, error)) << error;
  EXPECT_EQ(clock.begin[0], (std::vector<double>{0, 1, 1, 4}));
  EXPECT_EQ(clock.end[0], (std::vector<double>{1, 2, 4, 7}));
  EXPECT_EQ(clock.exposed[0][size_t(ActionKind::Unshard)], 1.0);
}
