// SPDX-License-Identifier: Apache-2.0
//
// Descriptions, memory and rows of experts for measurements of products.
#ifndef ROTA_TOOLS_BENCH_GEMMOPERANDS_H
#define ROTA_TOOLS_BENCH_GEMMOPERANDS_H

#include "runtime/Abi.h"
#include "runtime/GroupedAbi.h"
#include "runtime/device/GemmShape.h"
#include "runtime/device/cpu/HostArena.h"

#include <algorithm>
#include <cstdint>
#include <emmintrin.h>
#include <vector>

namespace rota::bench {

/// A product of matrices without gaps between their rows.
inline RotaGemm describe(int64_t m, int64_t n, int64_t k, bool transposeA,
                         bool transposeB, int32_t type, int32_t typeC,
                         bool accumulates) {
  RotaGemm g = {};
  g.batch = 1, g.m = m, g.n = n, g.k = k;
  g.lda = transposeA ? m : k, g.ldb = transposeB ? k : n, g.ldc = n;
  g.transposeA = transposeA, g.transposeB = transposeB;
  g.typeA = g.typeB = type, g.typeC = typeC;
  g.accumulate = accumulates;
  return g;
}

/// Memory on pages like those of a trainer's arena. Every element is about 1.
class Operand {
public:
  Operand(int64_t elements, int32_t type)
      : arena(elements * elementBytes(type)) {
    std::fill_n(static_cast<uint16_t *>(data()), arena.bytes() / 2, 0x3f80);
  }
  void *data() const { return arena.at(0); }

  /// Removes it from the caches of all cores.
  void flush() const {
    for (int64_t i = 0; i < arena.bytes(); i += 64)
      _mm_clflush(static_cast<char *>(data()) + i);
  }

private:
  HostArena arena;
};

/// Counts of the rows of each expert in each sequence, whose tokens choose
/// experts at random.
inline std::vector<int32_t> chooseExperts(const RotaGroupedGemm &g) {
  std::vector<int32_t> counts(g.batch * g.experts);
  uint64_t state = 1;
  for (int64_t row = 0; row < g.batch * g.rows; ++row) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ++counts[row / g.rows * g.experts + int64_t((state >> 33) % g.experts)];
  }
  return counts;
}

} // namespace rota::bench

#endif // ROTA_TOOLS_BENCH_GEMMOPERANDS_H
