// SPDX-License-Identifier: Apache-2.0
#include "test/runtime/GemmCase.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <utility>

namespace rota::test {

Buffer::Buffer(int32_t type, int64_t size)
    : type(type), bytes(size * (type == ROTA_F32 ? 4 : 2)) {}

double Buffer::get(int64_t i) const {
  if (type == ROTA_F32) {
    float value;
    std::memcpy(&value, &bytes[i * 4], 4);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, &bytes[i * 2], 2);
  return std::bit_cast<float>(uint32_t(half) << 16);
}

void Buffer::set(int64_t i, float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t half = uint16_t(bits >> 16);
  if (type == ROTA_F32)
    std::memcpy(&bytes[i * 4], &value, 4);
  else
    std::memcpy(&bytes[i * 2], &half, 2);
}

void Buffer::fill(unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  int64_t size = int64_t(bytes.size()) / (type == ROTA_F32 ? 4 : 2);
  for (int64_t i = 0; i < size; ++i)
    set(i, uniform(random));
}

RotaGemm describeGemm(int64_t batch, int64_t m, int64_t n, int64_t k, bool ta,
                      bool tb, int32_t typeA, int32_t typeB, int32_t typeC,
                      bool accumulate, int64_t gap) {
  RotaGemm g = {};
  g.batch = batch, g.m = m, g.n = n, g.k = k;
  g.lda = (ta ? m : k) + gap, g.ldb = (tb ? k : n) + gap, g.ldc = n + gap;
  g.strideA = (ta ? k : m) * g.lda + gap;
  g.strideB = (tb ? n : k) * g.ldb + gap;
  g.strideC = m * g.ldc + gap;
  g.transposeA = ta, g.transposeB = tb;
  g.typeA = typeA, g.typeB = typeB, g.typeC = typeC;
  g.accumulate = accumulate;
  return g;
}

Operands::Operands(const RotaGemm &g)
    : a(g.typeA, g.batch * g.strideA), b(g.typeB, g.batch * g.strideB),
      c(g.typeC, g.batch * g.strideC) {
  a.fill(1), b.fill(2), c.fill(3);
}

/// The element [i, j] of batch `batch`, and the sum of its terms' magnitudes.
static std::pair<double, double> expected(const RotaGemm &g, const Operands &in,
                                          int64_t batch, int64_t i, int64_t j) {
  double sum = g.accumulate ? in.c.get(batch * g.strideC + i * g.ldc + j) : 0.0;
  double magnitude = std::abs(sum);
  for (int64_t k = 0; k < g.k; ++k) {
    double term = in.a.get(batch * g.strideA +
                           (g.transposeA ? k * g.lda + i : i * g.lda + k)) *
                  in.b.get(batch * g.strideB +
                           (g.transposeB ? j * g.ldb + k : k * g.ldb + j));
    sum += term;
    magnitude += std::abs(term);
  }
  return {sum, magnitude};
}

void expectProduct(const RotaGemm &g, const Operands &in, const Buffer &c,
                   double roundedShare) {
  double rounding = g.typeC == ROTA_BF16 ? 0x1p-8 : 0.0;
  for (int64_t batch = 0; batch < g.batch; ++batch) {
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = 0; j < g.ldc; ++j) {
        int64_t at = batch * g.strideC + i * g.ldc + j;
        if (j >= g.n) {
          ASSERT_EQ(c.get(at), in.c.get(at)) << "gap at " << i << ", " << j;
          continue;
        }
        auto [value, magnitude] = expected(g, in, batch, i, j);
        ASSERT_NEAR(c.get(at), value,
                    (1e-6 + rounding * roundedShare) * magnitude +
                        rounding * std::abs(value))
            << "batch " << batch << " at " << i << ", " << j;
      }
    }
  }
}

} // namespace rota::test
