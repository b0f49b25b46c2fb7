// SPDX-License-Identifier: Apache-2.0
//
// Switches between stacks, of this machine and, in simt-ucontext-tests, of
// ucontext.
#include "runtime/device/simt/Fibers.h"

#include <cstring>
#include <gtest/gtest.h>
#include <vector>

using rota::simt::Fibers;

namespace {

/// Fibers that go round: each notes its number and gives way to the next.
struct Round {
  Fibers fibers{run, this};
  std::vector<uint32_t> order;
  uint32_t count = 0, current = 0, laps = 0;

  static void run(void *owner) {
    Round &round = *static_cast<Round *>(owner);
    uint32_t self = round.current;
    double local = self + 0.5; // must survive switches
    char bytes[4096];
    std::memset(bytes, static_cast<int>(self), sizeof(bytes));
    for (uint32_t lap = 0; lap < round.laps; ++lap) {
      round.order.push_back(static_cast<uint32_t>(local));
      EXPECT_EQ(bytes[lap], static_cast<char>(self));
      EXPECT_TRUE(round.fibers.isOnStack(self, bytes));
      round.giveWay(self);
    }
    round.fibers.leave(self);
    ADD_FAILURE() << "a fiber that has left goes on";
  }

  void giveWay(uint32_t self) {
    current = (self + 1) % count;
    fibers.switchTo(self, current);
  }

  void go(uint32_t fibersCount, uint32_t lapsCount) {
    count = fibersCount;
    laps = lapsCount;
    order.clear();
    ASSERT_TRUE(fibers.prepare(count));
    current = 0;
    fibers.enter(0);
  }
};

TEST(Fibers, TakeTurns) {
  Round round;
  round.go(3, 2);
  EXPECT_EQ(round.order, (std::vector<uint32_t>{0, 1, 2, 0, 1, 2}));
}

/// Fibers that never came to their end are forgotten.
TEST(Fibers, StartAnew) {
  Round round;
  round.go(2, 1);
  round.go(1024, 1);
  EXPECT_EQ(round.order.size(), 1024u);
  EXPECT_EQ(round.order.back(), 1023u);
  round.go(2, 3);
  EXPECT_EQ(round.order, (std::vector<uint32_t>{0, 1, 0, 1, 0, 1}));
}

TEST(Fibers, HaveStacksOfTheirOwn) {
  Round round;
  round.go(2, 1);
  int onThisStack = 0;
  EXPECT_FALSE(round.fibers.isOnStack(0, &onThisStack));
  EXPECT_FALSE(round.fibers.isOnStack(1, &onThisStack));
}

} // namespace
