// SPDX-License-Identifier: Apache-2.0
//
// Orders that are computed, windows of files, shares of sources.
#include "runtime/data/TokenWindows.h"
#include "runtime/data/Mixture.h"
#include "runtime/data/Permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

using namespace rota;

static Permutation orderOf(int64_t size, uint64_t seed, int64_t epoch) {
  return Permutation(size, RandomStream(seed, "order", epoch));
}

TEST(Permutation, IsABijection) {
  std::vector<int64_t> sizes(400);
  std::iota(sizes.begin(), sizes.end(), 1);
  for (int64_t size : {1023, 1024, 1025, 4095, 9999, 10000, 10001, 65537})
    sizes.push_back(size);
  for (int64_t size : sizes)
    for (uint64_t seed : {1, 2})
      for (int64_t epoch : {0, 1, 1000}) {
        Permutation order = orderOf(size, seed, epoch);
        std::vector<bool> taken(static_cast<size_t>(size));
        for (int64_t i = 0; i < size; ++i) {
          int64_t to = order.at(i);
          ASSERT_TRUE(to >= 0 && to < size) << size;
          ASSERT_FALSE(taken[static_cast<size_t>(to)]) << size;
          taken[static_cast<size_t>(to)] = true;
        }
      }
}

/// In a range that no table would hold, distinct numbers go to distinct numbers
/// of the range, spread over all of it.
TEST(Permutation, OfATrillionNumbers) {
  const int64_t size = (int64_t(1) << 40) + 12345;
  Permutation order = orderOf(size, 7, 3);
  std::set<int64_t> images;
  double sum = 0.0;
  for (int64_t i = 0; i < 20000; ++i) {
    int64_t to = order.at(size - 1 - i * 1000003);
    ASSERT_TRUE(to >= 0 && to < size);
    images.insert(to);
    sum += static_cast<double>(to) / static_cast<double>(size);
  }
  EXPECT_EQ(images.size(), 20000u);
  EXPECT_NEAR(sum / 20000, 0.5, 0.01); // 5 standard deviations
}

/// Each of the 24 orders of 4 numbers is as frequent as every other.
TEST(Permutation, HasNoPreferredOrder) {
  std::map<std::vector<int64_t>, int> times;
  const int draws = 24000;
  for (int64_t epoch = 0; epoch < draws; ++epoch) {
    Permutation order = orderOf(4, 1, epoch);
    ++times[{order.at(0), order.at(1), order.at(2), order.at(3)}];
  }
  ASSERT_EQ(times.size(), 24u);
  double chi = 0.0;
  for (const auto &[order, count] : times)
    chi += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi, 49.7); // 23 degrees of freedom: probability 0.001
}

/// Neighbours do not stay neighbours.
TEST(Permutation, BreaksUpNeighbours) {
  const int64_t size = 10007;
  Permutation order = orderOf(size, 1, 0);
  int64_t near = 0;
  for (int64_t i = 0; i + 1 < size; ++i)
    near += std::abs(order.at(i + 1) - order.at(i)) <= 10;
  EXPECT_LT(near, 50); // 20 are expected by chance
}

TEST(TokenWindows, ArePermutedAndShiftedInEachEpoch) {
  // 30 tokens: 4 windows of 7 and 1 token over; 8 tokens: one window, none
  // over; 7: none; 20: 2 windows and 5 over.
  TokenWindows windows({0, 30, 38, 45, 65}, 7, 5, "w");
  ASSERT_EQ(windows.count(), 7);
  EXPECT_EQ(windows.unusedFiles(), 1);
  std::set<std::vector<int64_t>> orders;
  std::map<int64_t, std::set<int64_t>> phases;
  for (int64_t epoch = 0; epoch < 200; ++epoch) {
    std::vector<int64_t> order;
    for (int64_t i = 0; i < 7; ++i)
      order.push_back(windows.position(7 * epoch + i));
    orders.insert(order);
    std::ranges::sort(order);
    int64_t a = order[0], d = order[5] - 45;
    EXPECT_EQ(order, (std::vector<int64_t>{a, a + 7, a + 14, a + 21, 30, 45 + d,
                                           52 + d}));
    phases[0].insert(a);
    phases[3].insert(d);
  }
  EXPECT_GT(orders.size(), 190u);
  EXPECT_EQ(phases[0], (std::set<int64_t>{0, 1}));
  EXPECT_EQ(phases[3], (std::set<int64_t>{0, 1, 2, 3, 4, 5}));
}

/// `at` agrees with counting one sequence after the other; shares are exact in
/// each cycle and near in between.
TEST(Mixture, IsExactAndEven) {
  std::vector<std::vector<int64_t>> cases = {{1},
                                             {7, 3},
                                             {1, 1, 1},
                                             {1, 999},
                                             {999, 1},
                                             {5, 4, 3, 2, 1},
                                             {1, 2, 3, 100},
                                             {1, 1, 1, 1, 1, 1, 1, 1},
                                             {333333, 666667}};
  for (const std::vector<int64_t> &shares : cases) {
    Mixture mixture(shares);
    auto cycle = std::accumulate(shares.begin(), shares.end(), int64_t(0));
    std::vector<int64_t> counts(shares.size());
    for (int64_t n = 0; n < 2 * std::min<int64_t>(cycle, 5000); ++n) {
      for (size_t s = 0; s < shares.size(); ++s) {
        ASSERT_EQ(mixture.countBefore(n, s), counts[s]);
        double ideal = static_cast<double>(n) * static_cast<double>(shares[s]) /
                       static_cast<double>(cycle);
        ASSERT_LT(std::abs(static_cast<double>(counts[s]) - ideal),
                  static_cast<double>(shares.size()) / 2 + 1);
        if (n == cycle)
          ASSERT_EQ(counts[s], shares[s]);
      }
      Mixture::Place place = mixture.at(n);
      ASSERT_EQ(place.number, counts[place.source]);
      ++counts[place.source];
    }
    // Far into a run, too.
    const int64_t cycles = int64_t(1) << 30;
    for (size_t s = 0; s < shares.size(); ++s)
      EXPECT_EQ(mixture.countBefore(cycles * cycle, s), cycles * shares[s]);
  }
}
