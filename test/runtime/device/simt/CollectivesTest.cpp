// SPDX-License-Identifier: Apache-2.0
//
// Collectives of a warp, computed in one step.
#include "runtime/device/simt/Collectives.h"

#include <bit>
#include <gtest/gtest.h>
#include <memory>

using namespace rota::simt;
using Kind = WarpOperation::Kind;

namespace {

constexpr uint32_t kAll = kAllLanes;

struct Warp {
  explicit Warp(WarpOperation operation, uint32_t mask = kAll)
      : pending(new PendingCollective{operation, 0, mask, 1, mask, {}}) {}

  /// Lane l brings 100 + l.
  Warp &shuffle(uint32_t operand) {
    for (uint32_t lane = 0; lane < kWarpSize; ++lane)
      pending->operands[lane] = {100 + lane, operand};
    wrong = compute(*pending, results);
    return *this;
  }
  Warp &run() {
    wrong = compute(*pending, results);
    return *this;
  }

  std::unique_ptr<PendingCollective> pending;
  std::array<Words, kWarpSize> results{};
  std::string wrong;
};

TEST(Collectives, ShuffleButterfly) {
  Warp warp({Kind::Shuffle, ROTA_SIMT_SHUFFLE_BUTTERFLY});
  warp.shuffle(16);
  EXPECT_EQ(warp.results[3][0], 119u);
  EXPECT_EQ(warp.results[19][0], 103u);
}

TEST(Collectives, ShuffleIndex) {
  Warp warp({Kind::Shuffle, ROTA_SIMT_SHUFFLE_INDEX});
  warp.shuffle(7);
  EXPECT_EQ(warp.results[3][0], 107u);
  EXPECT_EQ(warp.results[19][0], 107u);
}

TEST(Collectives, ShuffleFromOutsideOfTheMask) {
  Warp warp({Kind::Shuffle, ROTA_SIMT_SHUFFLE_INDEX}, 0xFF);
  EXPECT_EQ(warp.shuffle(9).wrong,
            "lane 7 reads lane 9, which is not in the mask 0x000000ff");
}

TEST(Collectives, Ballot) {
  Warp warp({Kind::Ballot}, 0xFFF0);
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    warp.pending->operands[lane].value = lane % 3 == 0;
  warp.run();
  EXPECT_EQ(warp.results[4][0], 0x9240u); // lanes 6, 9, 12, 15
}

/// Element [row, column] of matrix j is 1000 j + 10 row + column.
void checkLoad(uint32_t matrices, bool transpose) {
  uint16_t elements[4][8][8];
  Warp warp({Kind::LoadMatrix, 0, matrices, transpose});
  for (uint32_t j = 0; j < matrices; ++j)
    for (uint32_t row = 0; row < 8; ++row) {
      for (uint32_t column = 0; column < 8; ++column)
        elements[j][row][column] = 1000 * j + 10 * row + column;
      warp.pending->operands[8 * j + row].row = elements[j][row];
    }
  warp.run();
  for (uint32_t j = 0; j < matrices; ++j)
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      uint32_t g = lane / 4, t = lane % 4;
      uint32_t low =
          transpose ? 1000 * j + 20 * t + g : 1000 * j + 10 * g + 2 * t;
      uint32_t high = low + (transpose ? 10 : 1);
      EXPECT_EQ(warp.results[lane][j], low | high << 16)
          << "matrix " << j << ", lane " << lane;
    }
}

TEST(Collectives, LoadMatrix) {
  for (uint32_t matrices : {2, 4})
    for (bool transpose : {false, true})
      checkLoad(matrices, transpose);
}

uint32_t bf16(float number) { return std::bit_cast<uint32_t>(number) >> 16; }

/// Small integers, so that any order of additions is exact. Rows and columns of
/// fragments are spelled as in the manual of PTX.
TEST(Collectives, MultiplyBf16) {
  auto a = [](int m, int k) { return float((m * 5 + k * 3) % 11 - 5); };
  auto b = [](int k, int n) { return float((k * 7 + n * 2) % 13 - 6); };
  auto c = [](int m, int n) { return float(m * 8 + n); };
  Warp warp({Kind::Multiply});
  for (int lane = 0; lane < 32; ++lane) {
    int group = lane >> 2, inGroup = lane % 4;
    RotaSimtFragments &own = warp.pending->operands[lane].fragments;
    for (int i = 0; i < 8; ++i) {
      bool upper = i < 2 || (i >= 4 && i < 6);
      int row = upper ? group : group + 8;
      int column = inGroup * 2 + (i & 1) + (i < 4 ? 0 : 8);
      own.a[i / 2] |= bf16(a(row, column)) << 16 * (i % 2);
    }
    for (int i = 0; i < 4; ++i) {
      int row = inGroup * 2 + (i & 1) + (i < 2 ? 0 : 8);
      own.b[i / 2] |= bf16(b(row, group)) << 16 * (i % 2);
      own.c[i] = c(i < 2 ? group : group + 8, inGroup * 2 + (i & 1));
    }
  }
  warp.run();
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      int m = i < 2 ? lane >> 2 : (lane >> 2) + 8, n = lane % 4 * 2 + (i & 1);
      float expected = c(m, n);
      for (int k = 0; k < 16; ++k)
        expected += a(m, k) * b(k, n);
      EXPECT_EQ(std::bit_cast<float>(warp.results[lane][i]), expected);
    }
}

} // namespace
