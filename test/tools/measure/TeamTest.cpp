// SPDX-License-Identifier: Apache-2.0
//
// The threads that measure. How long anything takes is not tested.
#include "tools/measure/Team.h"
#include "runtime/device/Context.h"

#include <atomic>
#include <gtest/gtest.h>
#include <set>
#include <thread>

using namespace rota;

namespace {

TEST(Team, EachThreadRepeatsWorkOfItsOwn) {
  constexpr int kThreads = 3;
  int calls[kThreads] = {};
  std::thread::id ids[kThreads];
  double seconds = secondsTogether(kThreads, 0, [&](int thread) {
    ids[thread] = std::this_thread::get_id();
    return [&, thread] {
      EXPECT_EQ(ids[thread], std::this_thread::get_id());
      ++calls[thread];
      volatile double sum = 0;
      for (int i = 0; i < 1000; ++i)
        sum = sum + i;
    };
  });
  EXPECT_GT(seconds, 0);
  EXPECT_EQ(std::set<std::thread::id>(ids, ids + kThreads).size(), kThreads);
  for (int each : calls)
    EXPECT_GE(each, 2); // one before those that are measured
}

TEST(Team, SharedWorkHasTheCoresOfTheTeam) {
  constexpr int kPieces = 64;
  Cores cores(3);
  RotaContext context;
  context.cores = &cores;
  int calls = 0;
  std::atomic<int> pieces = 0;
  double seconds = secondsShared(cores, 0, [&] {
    ++calls;
    EXPECT_EQ(threadLimit(&context), 3);
    parallelPieces(&context, kPieces, [&](int64_t) { ++pieces; });
  });
  EXPECT_GE(seconds, 0);
  EXPECT_GE(calls, 4);
  EXPECT_EQ(pieces, calls * kPieces);
}

TEST(Team, EachThreadHasAPaceBesideItsWork) {
  constexpr int kThreads = 2;
  int work[kThreads] = {}, before[kThreads] = {}, paces[kThreads] = {};
  PacedSeconds time = pacedTogether(
      kThreads, 0, [&](int thread) { return [&, thread] { ++work[thread]; }; },
      [&](int thread) {
        return [&, thread] {
          before[thread] += work[thread] == 1; // what is not measured
          ++paces[thread];
          volatile double sum = 0;
          for (int i = 0; i < 1000; ++i)
            sum = sum + i;
        };
      });
  EXPECT_GT(time.pace.mean(), 0);
  EXPECT_GE(time.pace.slowest(), time.pace.mean());
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_GT(before[thread], 0);
    EXPECT_EQ(paces[thread], 2 * before[thread]);
  }
}

TEST(Team, TimesOfASlowMomentCountAtThePaceOfAll) {
  MedianTimes times;
  EXPECT_EQ(times.add("a", PacedSeconds{6, {{2}}}), 3 * 2);
  EXPECT_EQ(times.add("b", PacedSeconds{1, {{4}}}), 0.25 * 3); // of 2 and 4
  EXPECT_EQ(times.add("a", PacedSeconds{9, {{3}}}), 3 * 3);    // of 2, 4 and 3
}

TEST(Team, APaceIsThatOfSixteenInARow) {
  MedianTimes times;
  for (int i = 0; i < 16; ++i)
    times.add("a", PacedSeconds{1, {{i == 0 ? 17.0 : 1.0}}}); // 2 on average
  for (int i = 0; i < 32; ++i)
    times.add("a", PacedSeconds{1, {{4}}});
  EXPECT_EQ(times.steadiness(), 0.5);
  EXPECT_EQ(times.add("b", PacedSeconds{4, {{4}}}), 4);
}

TEST(Team, RanksWaitForTheSlowestCore) {
  MedianTimes times;
  EXPECT_EQ(times.slowestCore(), 1);
  times.add("a", PacedSeconds{1, {{1, 3}}}); // together as two cores of 1.5
  EXPECT_EQ(times.slowestCore(), 2);
}

TEST(Team, FreeShareIsAShare) {
  double share = freeShare(2);
  EXPECT_GT(share, 0);
  EXPECT_LE(share, 1);
}

} // namespace
