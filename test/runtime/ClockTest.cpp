// SPDX-License-Identifier: Apache-2.0
//
// The simulator of programs: when actions begin and end by given seconds.
#include "runtime/metrics/RunDescription.h"
#include "runtime/program/Verify.h"
#include "runtime/program/WorkSpeed.h"
#include "runtime/train/step/Bubble.h"
#include "test/runtime/TwoStageProgram.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace rota;
using namespace rota::test;

static constexpr auto kMeasured = ActionSeconds::Measured;

TEST(Clock, TakesTheLongestPath) {
  Program p = makeProgram();
  Clock clock;
  std::string error;
  ASSERT_TRUE(runClock(p, {{2.0, 0.0}, {0.0, 3.0}}, kMeasured, clock, error))
      << error;
  EXPECT_EQ(clock.end[0][0], 2.0);
  EXPECT_EQ(clock.end[1][0], 2.0);
  EXPECT_EQ(clock.makespan, 5.0);
}

TEST(Clock, LetsMessagesTakeTheLatencyOfASend) {
  Program p = makeProgram();
  Clock clock;
  std::string error;
  ASSERT_TRUE(runClock(p, {{2.0, 0.5}, {0.0, 3.0}}, kMeasured, clock, error))
      << error;
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
  ASSERT_TRUE(runClock(p, seconds, kMeasured, clock, error, {1.0, 4.0}))
      << error;
  EXPECT_EQ(clock.ends, (StepEnds{4.0, 7.0}));
  double step = 0.0;
  ASSERT_TRUE(runSteadyClock(p, seconds, kMeasured, step, error)) << error;
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
  ASSERT_TRUE(runClock(p, {{1, 1, 3, 3}}, kMeasured, clock, error)) << error;
  EXPECT_EQ(clock.begin[0], (std::vector<double>{0, 1, 1, 4}));
  EXPECT_EQ(clock.end[0], (std::vector<double>{1, 2, 4, 7}));
  EXPECT_EQ(clock.exposed[0][size_t(ActionKind::Unshard)], 1.0);

  // The second gather takes half of the speed of the work beside it; measured
  // seconds contain that.
  for (ActionTemplate &form : stage.templates)
    if (isTransfer(form.kind))
      form.slowsWork = 0.5;
  for (auto [source, end] :
       {std::pair(kMeasured, 7.0), {ActionSeconds::Planned, 7.5}}) {
    ASSERT_TRUE(runClock(p, {{1, 1, 3, 3}}, source, clock, error)) << error;
    EXPECT_EQ(clock.makespan, end);
  }
}

TEST(WorkSpeed, FallsByTheSharesOfTransfers) {
  WorkSpeed speed;
  EXPECT_EQ(speed.endOf(1, 3), 4);
  EXPECT_EQ(speed.workIn({1, 4}), 3);
  speed.slowDown({2, 4}, 0.5, 0);
  speed.slowDown({3, 6}, 0.75, 0);
  speed.slowDown({8, 9}, 1, 0);
  // Pieces of time from 1 on, and the work in each: 1 by 2; 0.5 by 3; none by
  // 4, where both take more than there is; 0.5 by 6; 2 by 8; none by 9.
  for (auto [work, end] : {std::pair(0.0, 1.0),
                           {0.5, 1.5},
                           {1.25, 2.5},
                           {1.75, 5.0},
                           {3, 7.0},
                           {4, 8.0},
                           {5, 10.0}}) {
    EXPECT_EQ(speed.endOf(1, work), end) << work;
    EXPECT_EQ(speed.workIn({1, end}), work) << work;
  }
  speed.slowDown({20, 20}, 1, 20); // forgets the others
  EXPECT_EQ(speed.endOf(1, 3), 4);
}
