// SPDX-License-Identifier: Apache-2.0
//
// The decision whether a step updates anything, on the CPU.
#include "runtime/device/cpu/CpuDevice.h"
#include "test/runtime/StepDecisions.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace rota;
using namespace rota::test;

namespace {

SkipReason decide(DecisionCase &step) {
  StepDecision decision = step.decision();
  cpuDevice().decideStep(decision);
  return static_cast<SkipReason>(static_cast<int>(step.result[kSkipResult]));
}

/// A loss of about 2 and a norm of about 1 for that many steps.
void fillHistory(DecisionCase &step, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    step.setLoss(2.0F + 0.01F * static_cast<float>(i % 5));
    step.result[kNormResult] = 1.0 + 0.01 * static_cast<double>(i % 7);
    ASSERT_EQ(decide(step), SkipReason::None) << i;
  }
}

} // namespace

TEST(DecideStep, SkipsWhatIsNotFinite) {
  for (float bad : {NAN, INFINITY, -INFINITY}) {
    DecisionCase step(3, 2);
    EXPECT_EQ(decide(step), SkipReason::None);
    EXPECT_EQ(step.history[0], 1.0);
    step.setLoss(bad);
    EXPECT_EQ(decide(step), SkipReason::NotFinite);
    EXPECT_EQ(step.stepScalars[DecisionCase::kSkip], 1.0F);
    step.setLoss(1.0F);
    EXPECT_EQ(decide(step), SkipReason::None);
    EXPECT_EQ(step.stepScalars[DecisionCase::kSkip], 0.0F);
    step.result[kNormResult] = bad;
    EXPECT_EQ(decide(step), SkipReason::NotFinite);
    EXPECT_EQ(step.history[0], 2.0); // the finite ones
  }
}

/// The norm of any gradient is 0 where no target counts.
TEST(DecideStep, SkipsAWrongGradientOfAStepWithoutALoss) {
  DecisionCase step(1, 2);
  step.losses.assign(step.losses.size(), 0.0F);
  step.result[kNormResult] = 0.0;
  EXPECT_EQ(decide(step), SkipReason::None);
  step.result[kWrongResult] = 3.0;
  EXPECT_EQ(decide(step), SkipReason::NotFinite);
}

TEST(DecideStep, TakesTheScalarsThatFitTheStepBefore) {
  DecisionCase step(1, 1);
  for (float bad : {1.0F, NAN, NAN, 1.0F, 1.0F}) {
    bool wasSkipped = step.result[kSkipResult] != 0.0;
    step.setLoss(bad);
    decide(step);
    EXPECT_EQ(step.stepScalars[0], wasSkipped ? 20.0F : 10.0F);
    EXPECT_EQ(step.stepScalars[3], wasSkipped ? 23.0F : 13.0F);
    EXPECT_EQ(step.stepScalars[DecisionCase::kScale], -1.0F); // finishStep's
  }
}

TEST(DecideStep, SkipsSpikesOfLossAndNorm) {
  DecisionCase step(2, 2, 3);
  step.deviations = 6.0;
  fillHistory(step, 200);
  EXPECT_EQ(step.history[0], 200.0);
  step.setLoss(2.5F);
  EXPECT_EQ(decide(step), SkipReason::Loss);
  step.setLoss(2.0F);
  step.result[kNormResult] = 1.5;
  EXPECT_EQ(decide(step), SkipReason::Norm);
  step.result[kNormResult] = 0.1; // a fall is no spike
  step.setLoss(1.0F);
  EXPECT_EQ(decide(step), SkipReason::None);
  EXPECT_EQ(step.history[0], 201.0); // no skipped step enters
  step.deviations = 0.0;
  step.setLoss(100.0F);
  EXPECT_EQ(decide(step), SkipReason::None);
}

TEST(DecideStep, ComparesWithHalfAWindowAtLeast) {
  for (int64_t count : {kHistoryLength / 2 - 1, kHistoryLength / 2}) {
    DecisionCase step(1, 1);
    step.deviations = 6.0;
    fillHistory(step, count);
    step.setLoss(50.0F);
    EXPECT_EQ(decide(step),
              count < kHistoryLength / 2 ? SkipReason::None : SkipReason::Loss);
  }
}

/// The mean and deviation of the last kHistoryLength steps, and of no others.
TEST(DecideStep, ForgetsWhatIsOlderThanTheWindow) {
  DecisionCase step(1, 1);
  for (int64_t i = 0; i < 3 * kHistoryLength; ++i) {
    step.setLoss(i < 2 * kHistoryLength ? 1000.0F * static_cast<float>(i % 2)
                                        : 2.0F + static_cast<float>(i % 2));
    decide(step);
  }
  // Mean 2.5, deviation 0.502.
  step.deviations = 3.0;
  step.setLoss(4.0F);
  EXPECT_EQ(decide(step), SkipReason::None);
  step.setLoss(4.2F);
  EXPECT_EQ(decide(step), SkipReason::Loss);
}

TEST(DecideStep, RemembersNoStepWithoutALoss) {
  DecisionCase step(1, 2);
  step.losses.assign(step.losses.size(), 0.0F);
  EXPECT_EQ(decide(step), SkipReason::None);
  EXPECT_EQ(step.history[0], 0.0);
}
