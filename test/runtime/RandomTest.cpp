// SPDX-License-Identifier: Apache-2.0
//
// The generator against its published vectors, and the properties that its
// header states.
#include "runtime/random/Philox.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace rota;

TEST(Philox, KnownAnswers) {
  // kat_vectors of Random123, philox4x32 10.
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                   {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, NumbersDoNotDependOnTheSplit) {
  RandomStream stream(7, "weight", 3);
  std::vector<float> whole(1000), parts(1000);
  stream.normal(0, 1000, 0.5, 2.0, whole.data());
  int64_t bounds[] = {0, 1, 6, 7, 500, 999, 1000};
  for (int i = 0; i + 1 < 7; ++i)
    stream.normal(bounds[i], bounds[i + 1], 0.5, 2.0, &parts[bounds[i]]);
  EXPECT_EQ(whole, parts);
}

TEST(RandomStream, SeedNameAndStreamAllMatter) {
  uint64_t base = RandomStream(1, "a", 0).bits(0);
  EXPECT_NE(base, RandomStream(2, "a", 0).bits(0));
  EXPECT_NE(base, RandomStream(1, "b", 0).bits(0));
  EXPECT_NE(base, RandomStream(1, "a", 1).bits(0));
  EXPECT_NE(base, RandomStream(1, "a", 0).bits(1));
  EXPECT_EQ(base, RandomStream(1, "a", 0).bits(0));
}

TEST(RandomStream, NormalHasItsMoments) {
  constexpr int64_t kCount = 400000;
  std::vector<float> values(kCount);
  RandomStream(1, "moments", 0).normal(0, kCount, 0.0, 1.0, values.data());
  double moments[5] = {};
  for (double value : values)
    for (int power = 1; power <= 4; ++power)
      moments[power] += std::pow(value, power) / kCount;
  // Five standard errors: sqrt(var(x^k) / count) with var = 1, 2, 15, 96.
  EXPECT_NEAR(moments[1], 0.0, 5 * std::sqrt(1.0 / kCount));
  EXPECT_NEAR(moments[2], 1.0, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(moments[3], 0.0, 5 * std::sqrt(15.0 / kCount));
  EXPECT_NEAR(moments[4], 3.0, 5 * std::sqrt(96.0 / kCount));
}

TEST(RandomStream, UniformStaysWithinItsBounds) {
  std::vector<float> values(100000);
  RandomStream(1, "uniform", 0).uniform(0, 100000, -2.0, 3.0, values.data());
  double mean = 0.0;
  for (float value : values) {
    ASSERT_GE(value, -2.0f);
    ASSERT_LE(value, 3.0f);
    mean += value / 100000;
  }
  EXPECT_NEAR(mean, 0.5, 5 * 5.0 / std::sqrt(12.0 * 100000));
}

TEST(RandomStream, BelowReachesEveryValue) {
  RandomStream stream(1, "below", 0);
  std::vector<int> seen(5);
  for (int i = 0; i < 200; ++i) {
    int64_t value = stream.below(i, 5);
    ASSERT_GE(value, 0);
    ASSERT_LT(value, 5);
    ++seen[value];
  }
  for (int count : seen)
    EXPECT_GT(count, 10);
}
