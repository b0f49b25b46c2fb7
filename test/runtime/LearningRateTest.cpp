// SPDX-License-Identifier: Apache-2.0
//
// The learning rate of each step, against numbers computed by hand.
#include "runtime/train/step/LearningRate.h"

#include <gtest/gtest.h>

using namespace rota;

namespace {

/// From 1 to 0.1 after 10 steps of warm-up.
OptimizerOptions withSchedule(LearningRateSchedule schedule) {
  OptimizerOptions options;
  options.schedule = schedule;
  options.learningRate = 1.0;
  options.minLearningRate = 0.1;
  options.warmupSteps = 10;
  return options;
}

} // namespace

TEST(LearningRate, WarmsUpAndFallsAlongACosine) {
  OptimizerOptions options;
  options.learningRate = 1.0;
  options.minLearningRate = 0.1;
  options.warmupSteps = 10;
  EXPECT_DOUBLE_EQ(learningRateAt(options, 1, 110), 0.1);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 9, 110), 0.9);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 10, 110), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 11, 110), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 61, 110), 0.55);
  EXPECT_GT(learningRateAt(options, 110, 110), 0.1);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 111, 110), 0.1);
}

TEST(LearningRate, IsThePeakAtTheFirstStepWithoutWarmUp) {
  OptimizerOptions options;
  options.learningRate = 1.0;
  EXPECT_DOUBLE_EQ(learningRateAt(options, 1, 1), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 1, 4), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 3, 4), 0.5);
}

TEST(LearningRate, RisesInARunShorterThanItsWarmUp) {
  OptimizerOptions options;
  options.learningRate = 1.0;
  options.warmupSteps = 200;
  EXPECT_DOUBLE_EQ(learningRateAt(options, 1, 1), 1.0 / 200);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 100, 110), 0.5);
  options.warmupSteps = 4;
  EXPECT_DOUBLE_EQ(learningRateAt(options, 4, 4), 1.0);
}

TEST(LearningRate, ConstantStaysAtThePeak) {
  OptimizerOptions options = withSchedule(LearningRateSchedule::Constant);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 5, 110), 0.5);
  for (int64_t t : {10, 11, 60, 110})
    EXPECT_EQ(learningRateAt(options, t, 110), 1.0) << t;
}

TEST(LearningRate, LinearFallsInALineAfterTheWarmUp) {
  OptimizerOptions options = withSchedule(LearningRateSchedule::Linear);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 5, 110), 0.5);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 11, 110), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 36, 110), 0.775);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 61, 110), 0.55);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 110, 110), 0.109);
}

TEST(LearningRate, WsdFallsInItsLastShareAlone) {
  OptimizerOptions options = withSchedule(LearningRateSchedule::WSD);
  options.decayShare = 0.2; // the last 22 of 110
  EXPECT_DOUBLE_EQ(learningRateAt(options, 5, 110), 0.5);
  for (int64_t t : {11, 50, 88, 89})
    EXPECT_EQ(learningRateAt(options, t, 110), 1.0) << t;
  EXPECT_DOUBLE_EQ(learningRateAt(options, 100, 110), 0.55);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 110, 110), 0.1 + 0.9 / 22);
  options.decayShare = 0.0;
  EXPECT_EQ(learningRateAt(options, 110, 110), 1.0);
}

/// The warm-up comes first where both do not fit.
TEST(LearningRate, AWsdDecayBeginsAfterTheWarmUp) {
  OptimizerOptions options = withSchedule(LearningRateSchedule::WSD);
  options.decayShare = 1.0;
  EXPECT_DOUBLE_EQ(learningRateAt(options, 10, 20), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 11, 20), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 16, 20), 0.55);
  EXPECT_DOUBLE_EQ(learningRateAt(options, 10, 10), 1.0);
}
