// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/cpu/PanelProduct.h"
#include "runtime/program/Convert.h"

#include <algorithm>
#include <vector>

namespace rota {
namespace {

/// A product with a whole tile and partial ones has the sums of a plain loop.
/// Elements are small integers, so these are exact in any order.
bool multiplies(const PanelKernels &kernels, int64_t k, bool transposesA) {
  constexpr int64_t kRows = 33, kColumns = 34;
  RotaGemm g = {};
  g.batch = 1, g.m = kRows, g.n = kColumns, g.k = k;
  g.lda = transposesA ? kRows : k, g.ldb = g.ldc = kColumns;
  g.transposeA = transposesA;
  g.typeA = g.typeB = ROTA_BF16, g.typeC = ROTA_F32;
  g.accumulate = 1;
  std::vector<uint16_t> a(kRows * k), b(k * kColumns);
  int value = 0;
  std::generate(a.begin(), a.end(), [&] { return toBf16(++value % 7 - 3); });
  std::generate(b.begin(), b.end(), [&] { return toBf16(++value % 5 - 2); });
  std::vector<float> c(kRows * kColumns, 1.0f), expected = c;
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t i = 0; i < k; ++i) {
      float left = fromBf16(a[transposesA ? i * kRows + row : row * k + i]);
      for (int64_t column = 0; column < kColumns; ++column)
        expected[row * kColumns + column] +=
            left * fromBf16(b[i * kColumns + column]);
    }
  Scratch scratch;
  PanelProduct(g, kernels).run(a.data(), b.data(), c.data(), scratch);
  return c == expected;
}

} // namespace

bool agreeWithPlainLoop(const PanelKernels &kernels) {
  return multiplies(kernels, 64, false) && multiplies(kernels, 37, true);
}

/// Kernels for AMX have never run on such a processor, so they have to show
/// that they multiply. Without them oneDNN makes more of AMX than kernels for
/// AVX-512 do.
static const PanelKernels *chooseKernels() {
  if (!hasAmx())
    return panelKernelsOfAvx512();
  if (!mayUseAmx())
    return nullptr;
  const PanelKernels &amx = panelKernelsOfAmx();
  return agreeWithPlainLoop(amx) ? &amx : nullptr;
}

const PanelKernels *panelKernels() {
  static const PanelKernels *const kernels = chooseKernels();
  return kernels;
}

} // namespace rota
