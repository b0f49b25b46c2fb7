// SPDX-License-Identifier: Apache-2.0
//
// Products of panels by the kernels of this processor, and by kernels of small
// vectors in plain C++, which any processor can run.
#include "runtime/device/cpu/PanelProduct.h"
#include "test/runtime/GemmCase.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <utility>

namespace rota::plain {

constexpr int kLanes = 8, kPairs = 1, kRows = 4, kVectors = 2;
constexpr PanelSizes kSizes = {.lanes = kLanes,
                               .pairs = kPairs,
                               .rows = kRows,
                               .vectors = kVectors,
                               .rowsInPlace = 1,
                               .mostPairs = 512,
                               .packedBytes = 800 << 10};
typedef float Floats __attribute__((ext_vector_type(kLanes)));
typedef uint32_t Pairs __attribute__((ext_vector_type(kLanes)));

static inline Floats addProducts(Floats sums, Pairs a, Pairs b) {
  auto first = [](Pairs pairs) {
    return __builtin_bit_cast(Floats, pairs << 16);
  };
  auto second = [](Pairs pairs) {
    return __builtin_bit_cast(Floats, pairs & 0xffff0000u);
  };
  return sums + second(a) * second(b) + first(a) * first(b);
}

#include "runtime/device/cpu/PanelMemory.inc"
#include "runtime/device/cpu/PanelVectors.inc"

} // namespace rota::plain

using namespace rota;
using namespace rota::test;

namespace {

/// The whole product by tiles of this size.
Buffer multiply(const RotaGemm &g, const PanelKernels &kernels,
                const Operands &in, int64_t tileM, int64_t tileN) {
  Buffer c = in.c;
  Scratch scratch;
  int64_t bytesC = g.typeC == ROTA_F32 ? 4 : 2;
  for (int64_t row = 0; row < g.m; row += tileM)
    for (int64_t column = 0; column < g.n; column += tileN) {
      RotaGemm tile = g;
      tile.m = std::min(tileM, g.m - row);
      tile.n = std::min(tileN, g.n - column);
      int64_t fromA = row * (g.transposeA ? 1 : g.lda);
      int64_t fromB = column * (g.transposeB ? g.ldb : 1);
      PanelProduct(tile, kernels)
          .run(in.a.bytes.data() + 2 * fromA, in.b.bytes.data() + 2 * fromB,
               c.bytes.data() + bytesC * (row * g.ldc + column), scratch);
    }
  return c;
}

class PanelKernelsTest : public testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    kernels = GetParam() ? panelKernelsOfAvx512() : &plain::kKernels;
    if (!kernels)
      GTEST_SKIP() << "this processor has no AVX-512 BF16";
  }

  void check(const RotaGemm &g, int64_t tileM, int64_t tileN) {
    SCOPED_TRACE(testing::Message()
                 << g.m << " x " << g.n << " x " << g.k << ", transposed "
                 << g.transposeA << g.transposeB << ", type of C " << g.typeC);
    Operands in(g);
    Buffer c = multiply(g, *kernels, in, g.m, g.n);
    expectProduct(g, in, c);
    EXPECT_EQ(multiply(g, *kernels, in, tileM, tileN).bytes, c.bytes)
        << "in tiles of " << tileM << " x " << tileN;
  }

  const PanelKernels *kernels = nullptr;
};

/// Whole and partial panels and vectors, odd k, rows with gaps; the bits of an
/// element do not depend on the tiles.
TEST_P(PanelKernelsTest, AgreesWithPlainLoop) {
  std::mt19937 random(1);
  auto upTo = [&](int64_t most) { return 1 + int64_t(random() % most); };
  for (int form = 0; form < 64; ++form) {
    int64_t m = upTo(form % 4 ? 40 : 150), n = upTo(form % 8 ? 150 : 600);
    RotaGemm g = describeGemm(1, m, n, upTo(130), form & 1, form & 2, ROTA_BF16,
                              ROTA_BF16, form & 4 ? ROTA_F32 : ROTA_BF16,
                              form & 8, /*gap=*/form & 16 ? 3 : 0);
    check(g, upTo(m), upTo(n));
  }
}

/// Sums of several parts of k are rounded once.
TEST_P(PanelKernelsTest, AddsPartsOfK) {
  for (int form = 0; form < 16; ++form)
    check(describeGemm(1, 70, 90, 2305, form & 1, form & 2, ROTA_BF16,
                       ROTA_BF16, form & 4 ? ROTA_F32 : ROTA_BF16, form & 8,
                       /*gap=*/0),
          30, 50);
}

TEST_P(PanelKernelsTest, KeepsWhatIsNoNumber) {
  RotaGemm g = describeGemm(1, 5, 20, 7, false, true, ROTA_BF16, ROTA_BF16,
                            ROTA_BF16, false, 0);
  Operands in(g);
  in.a.set(0, NAN);
  in.a.set(g.lda + 6, INFINITY);
  Buffer c = multiply(g, *kernels, in, g.m, g.n);
  for (int64_t column = 0; column < g.n; ++column) {
    EXPECT_TRUE(std::isnan(c.get(column)));
    EXPECT_TRUE(std::isinf(c.get(g.ldc + column)));
    EXPECT_TRUE(std::isfinite(c.get(2 * g.ldc + column)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, PanelKernelsTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool> &info) {
                           return info.param ? "OfThisProcessor" : "Plain";
                         });

} // namespace
