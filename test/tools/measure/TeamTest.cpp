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

TEST(Team, FreeShareIsAShare) {
  double share = freeShare(2);
  EXPECT_GT(share, 0);
  EXPECT_LE(share, 1);
}

} // namespace
