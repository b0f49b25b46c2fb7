// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/HostArena.h"

#include <gtest/gtest.h>

using rota::HostArena;

namespace {

constexpr int64_t kHugePage = int64_t(1) << 21;

TEST(HostArena, BeginsWithAHugePage) {
  for (int64_t bytes : {int64_t(1), kHugePage, 5 * kHugePage + 4096}) {
    HostArena arena(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.at(0)) % kHugePage, 0u);
  }
}

/// Linux before 5.14 leaves memory to the first writes.
TEST(HostArena, IsResidentWherePopulated) {
  HostArena arena(4 * kHugePage + 64);
  EXPECT_EQ(arena.residentBytes(), 0);
  arena.populate(kHugePage, 2 * kHugePage);
  if (arena.residentBytes() == 0)
    GTEST_SKIP() << "the kernel does not populate memory";
  EXPECT_EQ(arena.residentBytes(), 2 * kHugePage);
  arena.populate(3 * kHugePage, kHugePage + 64);
  EXPECT_EQ(arena.residentBytes(), 3 * kHugePage + 4096);
  EXPECT_EQ(arena.highWater(), 0) << "no byte has changed";
}

TEST(HostArena, KeepsBytesThatAreThere) {
  HostArena arena(kHugePage);
  static_cast<char *>(arena.at(0))[4097] = 1;
  arena.populate(0, kHugePage);
  EXPECT_EQ(arena.highWater(), 4160);
}

} // namespace
