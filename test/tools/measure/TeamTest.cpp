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
  EXPECT_GT(time.pace, 0);
  for (int thread = 0; thread < kThreads; ++thread) {
    EXPECT_GT(before[thread], 0);
    EXPECT_EQ(paces[thread], 2 * before[thread]);
  }
}

TEST(Team, TimesOfASlowMomentCountAtThePaceOfAll) {
  MedianTimes times;
  EXPECT_EQ(times.add("a", PacedSeconds{6, 2}), 6);
  EXPECT_EQ(times.add("b", PacedSeconds{1, 4}), 0.25 * 4);
  EXPECT_EQ(times.add("c", PacedSeconds{1, 1}), 1 * 2);
  EXPECT_EQ(times.add("a", PacedSeconds{2, 1}), 3 * 2); // of 3 and 2
}

TEST(Team, FreeShareIsAShare) {
  double share = freeShare(2);
  EXPECT_GT(share, 0);
  EXPECT_LE(share, 1);
}

} // namespace
