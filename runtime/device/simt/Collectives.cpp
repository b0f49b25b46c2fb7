// SPDX-License-Identifier: Apache-2.0
//
// Layouts of fragments are those of PTX's manual for mma.m16n8k16 and ldmatrix,
// with g = lane / 4 and t = lane % 4.
#include "runtime/device/simt/Collectives.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace rota::simt {

using Results = std::array<Words, kWarpSize>;

static std::string shuffle(const PendingCollective &pending, Results &results) {
  std::string wrong;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
    if (!(pending.mask >> lane & 1))
      continue;
    uint32_t source = pending.operands[lane].operand % kWarpSize;
    if (pending.operation.variant == ROTA_SIMT_SHUFFLE_BUTTERFLY)
      source ^= lane;
    if (!(pending.mask >> source & 1))
      wrong = fmt::format("lane {} reads lane {}, which is not in the mask "
                          "{:#010x}",
                          lane, source, pending.mask);
    results[lane][0] = pending.operands[source].value;
  }
  return wrong;
}

static void vote(const PendingCollective &pending, Results &results) {
  uint32_t votes = 0;
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    votes |= (pending.operands[lane].value & pending.mask >> lane & 1) << lane;
  for (Words &result : results)
    result[0] = votes;
}

/// Register j of lane l: of matrix j, the elements [g, 2t] and [g, 2t + 1], or
/// [2t, g] and [2t + 1, g] of a transposed one. Lane 8j + r has row r's
/// address.
static void loadMatrix(const PendingCollective &pending, Results &results) {
  for (uint32_t j = 0; j < pending.operation.matrices; ++j)
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      uint16_t elements[2];
      for (uint32_t h = 0; h < 2; ++h) {
        uint32_t row = lane / 4, column = 2 * (lane % 4) + h;
        if (pending.operation.transpose)
          std::swap(row, column);
        const void *start = pending.operands[8 * j + row].row;
        std::memcpy(&elements[h], static_cast<const char *>(start) + 2 * column,
                    2);
      }
      results[lane][j] = elements[0] | uint32_t(elements[1]) << 16;
    }
}

/// Element `half` of a word of two bf16.
static float widen(uint32_t word, int half) {
  return std::bit_cast<float>(half ? word & 0xFFFF0000u : word << 16);
}

/// Products are exact in f32. Each sum starts at 0, goes through k in ascending
/// order, and c is added to it: a GPU's order differs, and its rounding.
static void multiply(const PendingCollective &pending, Results &results) {
  float a[16][16], b[16][8]; // [m, k], [k, n]
  for (int lane = 0; lane < 32; ++lane) {
    const RotaSimtFragments &own = pending.operands[lane].fragments;
    int g = lane / 4, t = lane % 4;
    for (int i = 0; i < 8; ++i)
      a[g + 8 * (i >> 1 & 1)][2 * t + (i & 1) + 8 * (i >> 2)] =
          widen(own.a[i / 2], i & 1);
    for (int i = 0; i < 4; ++i)
      b[2 * t + (i & 1) + 8 * (i >> 1)][g] = widen(own.b[i / 2], i & 1);
  }
  float sums[16][8] = {};
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < 16; ++k)
      for (int n = 0; n < 8; ++n)
        sums[m][n] += a[m][k] * b[k][n];
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      float sum = sums[lane / 4 + 8 * (i >> 1)][2 * (lane % 4) + (i & 1)];
      results[lane][i] =
          std::bit_cast<uint32_t>(sum + pending.operands[lane].fragments.c[i]);
    }
}

std::string compute(const PendingCollective &pending, Results &results) {
  switch (pending.operation.kind) {
  case WarpOperation::Kind::WarpBarrier:
    break;
  case WarpOperation::Kind::Shuffle:
    return shuffle(pending, results);
  case WarpOperation::Kind::Ballot:
    vote(pending, results);
    break;
  case WarpOperation::Kind::LoadMatrix:
    loadMatrix(pending, results);
    break;
  case WarpOperation::Kind::Multiply:
    multiply(pending, results);
    break;
  }
  return "";
}

} // namespace rota::simt
