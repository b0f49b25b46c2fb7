// SPDX-License-Identifier: Apache-2.0
//
// The thread that prepares batches.
#include "runtime/data/ReadAhead.h"
#include "runtime/Error.h"

#include <gtest/gtest.h>

#include <vector>

using namespace rota;

TEST(ReadAhead, RunsFunctionsInTheirOrderInOneThread) {
  ReadAhead readAhead;
  std::vector<int> order;
  std::vector<std::future<std::thread::id>> results;
  for (int i = 0; i < 50; ++i)
    results.push_back(readAhead.start([&order, i] {
      order.push_back(i);
      return std::this_thread::get_id();
    }));
  std::thread::id first = results[0].get();
  EXPECT_NE(first, std::this_thread::get_id());
  for (size_t i = 1; i < results.size(); ++i)
    EXPECT_EQ(results[i].get(), first);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(ReadAhead, GivesAnExceptionToWhoAsks) {
  ReadAhead readAhead;
  auto bad = readAhead.start([]() -> int { throw InputError("token 7"); });
  auto good = readAhead.start([] { return 3; });
  EXPECT_EQ(good.get(), 3);
  EXPECT_THROW(bad.get(), InputError);
}

/// The end does not wait for a queue; what has not begun says so.
TEST(ReadAhead, EndsWhileFunctionsWait) {
  std::vector<std::future<int>> results;
  {
    ReadAhead readAhead;
    for (int i = 0; i < 10000; ++i)
      results.push_back(readAhead.start([i] { return i; }));
  }
  bool ended = false;
  for (int i = 0; i < 10000; ++i)
    try {
      EXPECT_EQ(results[static_cast<size_t>(i)].get(), i);
      EXPECT_FALSE(ended);
    } catch (const std::future_error &error) {
      EXPECT_EQ(error.code(), std::future_errc::broken_promise);
      ended = true;
    }
}
