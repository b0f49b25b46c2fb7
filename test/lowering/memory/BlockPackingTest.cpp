// SPDX-License-Identifier: Apache-2.0
#include "lowering/memory/BlockPacking.h"

#include <gtest/gtest.h>
#include <random>

using namespace rota::memory;

namespace {

/// Expects that blocks that are there at one time share no bytes.
void expectApart(const std::vector<TimedBlock> &blocks,
                 const Packing &packing) {
  for (size_t i = 0; i < blocks.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const TimedBlock &a = blocks[i], &b = blocks[j];
      if (a.begin >= b.end || b.begin >= a.end)
        continue;
      int64_t at = packing.offsets[i], other = packing.offsets[j];
      EXPECT_TRUE(at + a.bytes <= other || other + b.bytes <= at)
          << "blocks " << j << " and " << i;
    }
}

TEST(BlockPacking, GivesBytesOfAClosedBlockOutAgain) {
  Packing packing = packBlocks({{4, 0, 2}, {2, 1, 3}, {4, 2, 4}});
  EXPECT_EQ(packing.offsets, (std::vector<int64_t>{0, 4, 0}));
  EXPECT_EQ(packing.peak, 6);
}

TEST(BlockPacking, IsEmptyWithoutBlocks) { EXPECT_EQ(packBlocks({}).peak, 0); }

/// Largest first, the block of 1 byte, which is there as long as any other,
/// ends at 9.
TEST(BlockPacking, TriesAgainWhereGapsAreTooSmall) {
  std::vector<TimedBlock> blocks = {{3, 5, 9}, {5, 7, 8}, {2, 2, 5},
                                    {4, 2, 5}, {4, 5, 7}, {1, 2, 6}};
  Packing packing = packBlocks(blocks);
  expectApart(blocks, packing);
  EXPECT_EQ(packing.peak, 8);
}

TEST(BlockPacking, KeepsRandomBlocksApart) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<TimedBlock> blocks;
    int64_t sum = 0;
    for (size_t i = 0, count = random() % 30; i < count; ++i) {
      auto begin = static_cast<int64_t>(random() % 20);
      auto length = static_cast<int64_t>(1 + random() % 6);
      auto bytes = static_cast<int64_t>(1 + random() % 9);
      blocks.push_back({bytes, begin, begin + length});
      sum += bytes;
    }
    Packing packing = packBlocks(blocks);
    expectApart(blocks, packing);
    EXPECT_LE(packing.peak, sum);
  }
}

} // namespace
