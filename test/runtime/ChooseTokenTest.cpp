// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/sample/ChooseToken.h"
#include "runtime/Error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rota {
namespace {

SampleOptions with(double temperature, double topP) {
  SampleOptions options;
  options.temperature = temperature;
  options.topP = topP;
  return options;
}

TEST(ChooseToken, GreedyTakesTheFirstOfTheLargest) {
  EXPECT_EQ(chooseToken(std::vector{1.f, 3.f, 3.f}, with(0, 1), 0.99), 1);
}

/// Probabilities 1/2, 1/4, 1/8, 1/8 at temperature 1, in another order.
const std::vector<float> kLogits = {std::log(2.f), 0.f, std::log(4.f), 0.f};

TEST(ChooseToken, DrawsByProbability) {
  // In the order of tokens: up to 1/4, 3/8, 7/8 and 1.
  SampleOptions options = with(1, 1);
  EXPECT_EQ(chooseToken(kLogits, options, 0.24), 0);
  EXPECT_EQ(chooseToken(kLogits, options, 0.26), 1);
  EXPECT_EQ(chooseToken(kLogits, options, 0.86), 2);
  EXPECT_EQ(chooseToken(kLogits, options, 0.88), 3);
}

TEST(ChooseToken, TemperatureDividesLogits) {
  // Weights 4, 1, 16, 1 of 22.
  SampleOptions options = with(0.5, 1);
  EXPECT_EQ(chooseToken(kLogits, options, 3.9 / 22), 0);
  EXPECT_EQ(chooseToken(kLogits, options, 4.1 / 22), 1);
  EXPECT_EQ(chooseToken(kLogits, options, 20.9 / 22), 2);
  EXPECT_EQ(chooseToken(kLogits, with(1e-300, 1), 0.999), 2);
}

TEST(ChooseToken, TopPKeepsTheMostLikely) {
  // One token has 0.4 and more; two have 0.6, the more likely one first.
  for (double uniform : {0.01, 0.99})
    EXPECT_EQ(chooseToken(kLogits, with(1, 0.4), uniform), 2);
  EXPECT_EQ(chooseToken(kLogits, with(1, 0.6), 0.66), 2);
  EXPECT_EQ(chooseToken(kLogits, with(1, 0.6), 0.68), 0);
  // Of tokens that are as likely the first ones.
  EXPECT_EQ(chooseToken(kLogits, with(1, 0.8), 0.999), 1);
}

TEST(ChooseToken, RefusesWhatIsNotFinite) {
  std::vector<float> logits = {0.f, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(chooseToken(logits, with(0, 1), 0.5), RunError);
}

} // namespace
} // namespace rota
