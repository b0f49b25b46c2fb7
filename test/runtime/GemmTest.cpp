// SPDX-License-Identifier: Apache-2.0
//
// rotaGemm against a plain loop in f64: types, transposes, accumulation, odd
// sizes, gaps between rows and batches; and the same bits for any number of
// threads.
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/Context.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <tuple>
#include <vector>

namespace {

/// Elements of one type in memory, seen as doubles.
struct Buffer {
  Buffer(int32_t type, int64_t size)
      : type(type), bytes(size * (type == ROTA_F32 ? 4 : 2)) {}

  double get(int64_t i) const {
    if (type == ROTA_F32) {
      float value;
      std::memcpy(&value, &bytes[i * 4], 4);
      return value;
    }
    uint16_t half;
    std::memcpy(&half, &bytes[i * 2], 2);
    return std::bit_cast<float>(uint32_t(half) << 16);
  }
  void set(int64_t i, float value) {
    // Truncated to bf16: any value that the type can hold will do.
    uint32_t bits = std::bit_cast<uint32_t>(value);
    uint16_t half = uint16_t(bits >> 16);
    if (type == ROTA_F32)
      std::memcpy(&bytes[i * 4], &value, 4);
    else
      std::memcpy(&bytes[i * 2], &half, 2);
  }
  void fill(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
    int64_t size = int64_t(bytes.size()) / (type == ROTA_F32 ? 4 : 2);
    for (int64_t i = 0; i < size; ++i)
      set(i, uniform(random));
  }

  int32_t type;
  std::vector<char> bytes;
};

/// A description with `gap` unused elements after each row and batch.
RotaGemm describe(int64_t batch, int64_t m, int64_t n, int64_t k, bool ta,
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

struct Operands {
  explicit Operands(const RotaGemm &g)
      : a(g.typeA, g.batch * g.strideA), b(g.typeB, g.batch * g.strideB),
        c(g.typeC, g.batch * g.strideC) {
    a.fill(1), b.fill(2), c.fill(3);
  }
  Buffer a, b, c;
};

/// The element [i, j] of batch `batch`, and the sum of its terms' magnitudes.
std::pair<double, double> expected(const RotaGemm &g, const Operands &in,
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

/// Runs the product and compares each element, and that the gaps are as before.
void check(const RotaGemm &g, RotaContext *context = nullptr) {
  Operands in(g);
  Buffer c = in.c;
  rotaGemm(context, &g, in.a.bytes.data(), in.b.bytes.data(), c.bytes.data());
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
                    1e-6 * magnitude + rounding * std::abs(value))
            << "batch " << batch << " at " << i << ", " << j;
      }
    }
  }
}

/// [type of A, type of B, type of C, transpose A, transpose B, accumulate]
class GemmKinds : public testing::TestWithParam<
                      std::tuple<int, int, int, bool, bool, bool>> {
protected:
  RotaGemm of(int64_t batch, int64_t m, int64_t n, int64_t k, int64_t gap) {
    auto [a, b, c, ta, tb, accumulate] = GetParam();
    return describe(batch, m, n, k, ta, tb, a, b, c, accumulate, gap);
  }
};

TEST_P(GemmKinds, AgreesWithPlainLoop) {
  check(of(1, 28, 28, 28, 0));
  check(of(2, 5, 7, 3, 1));
  check(of(1, 1, 1, 1, 0));
  check(of(3, 1, 65, 17, 3));
  check(of(1, 33, 1, 600, 0));
  check(of(1, 70, 131, 513, 8));
}

TEST_P(GemmKinds, SameBitsForAnyNumberOfThreads) {
  RotaGemm g = of(1, 530, 300, 520, 4);
  ASSERT_GT(rota::tileGemm(g).countM * rota::tileGemm(g).countN, 1);
  Operands in(g);
  Buffer alone = in.c;
  rotaGemm(nullptr, &g, in.a.bytes.data(), in.b.bytes.data(),
           alone.bytes.data());
  for (int count : {2, 3}) {
    rota::Cores cores(count);
    rota::ComputeToken token(cores);
    RotaContext context;
    context.cores = &cores;
    for (int repeat = 0; repeat < 3; ++repeat) {
      Buffer c = in.c;
      rotaGemm(&context, &g, in.a.bytes.data(), in.b.bytes.data(),
               c.bytes.data());
      ASSERT_EQ(c.bytes, alone.bytes) << count << " threads";
    }
  }
}

std::string kindName(const testing::TestParamInfo<GemmKinds::ParamType> &info) {
  auto [a, b, c, ta, tb, accumulate] = info.param;
  auto type = [](int type) { return type == ROTA_F32 ? "F32" : "BF16"; };
  return std::string(type(a)) + (ta ? "T" : "N") + type(b) + (tb ? "T" : "N") +
         type(c) + (accumulate ? "Add" : "");
}

INSTANTIATE_TEST_SUITE_P(All, GemmKinds,
                         testing::Combine(testing::Values(ROTA_F32, ROTA_BF16),
                                          testing::Values(ROTA_F32, ROTA_BF16),
                                          testing::Values(ROTA_F32, ROTA_BF16),
                                          testing::Bool(), testing::Bool(),
                                          testing::Bool()),
                         kindName);

TEST(GemmTest, ManyTilesWithRemainders) {
  rota::Cores cores(2);
  rota::ComputeToken token(cores);
  RotaContext context;
  context.cores = &cores;
  check(describe(1, 1030, 517, 40, false, true, ROTA_F32, ROTA_F32, ROTA_F32,
                 false, 0),
        &context);
  check(describe(1, 517, 1030, 40, true, false, ROTA_BF16, ROTA_BF16, ROTA_F32,
                 true, 0),
        &context);
}

TEST(GemmTest, PanelsOfWholeRows) {
  RotaGemm g = describe(1, 1100, 70, 40, false, true, ROTA_BF16, ROTA_BF16,
                        ROTA_BF16, false, 0);
  ASSERT_EQ(rota::tileGemm(g).countN, 1);
  ASSERT_GT(rota::tileGemm(g).countM, 2);
  check(g);
  check(describe(2, 300, 70, 40, false, true, ROTA_F32, ROTA_F32, ROTA_F32,
                 true, 0));
}

TEST(GemmTest, EmptySumClearsUnlessItAccumulates) {
  RotaGemm g = describe(2, 3, 4, 0, false, false, ROTA_F32, ROTA_F32, ROTA_F32,
                        false, 2);
  check(g);
  g.accumulate = 1;
  check(g);
}

TEST(GemmTest, EmptyResultTouchesNothing) {
  RotaGemm g = describe(1, 0, 4, 5, false, false, ROTA_F32, ROTA_F32, ROTA_F32,
                        false, 0);
  rotaGemm(nullptr, &g, nullptr, nullptr, nullptr);
}

TEST(GemmTest, WrongDescriptionIsReported) {
  RotaContext context;
  RotaGemm g = describe(1, 4, 4, 8, false, false, ROTA_F32, ROTA_F32, ROTA_F32,
                        false, 0);
  g.lda = 7;
  float memory[64] = {};
  rotaGemm(&context, &g, memory, memory, memory);
  EXPECT_TRUE(context.failed);
  EXPECT_EQ(context.failure, "gemm of 4 x 4 x 8, f32 by f32 to f32: expected "
                             "an A row distance of at least 8, got 7");
}

TEST(GemmTest, MoreShapesThanTheCacheHolds) {
  for (int64_t n = 1; n <= 300; ++n)
    check(describe(1, 2, n, 3, false, false, ROTA_F32, ROTA_F32, ROTA_F32,
                   false, 0));
}

TEST(GemmTest, TilesCoverTheResult) {
  for (int64_t m : {1, 28, 255, 512, 513, 2048, 32000}) {
    for (int64_t n : {1, 64, 768, 2050, 32000}) {
      RotaGemm g = describe(1, m, n, 768, false, false, ROTA_F32, ROTA_F32,
                            ROTA_F32, false, 0);
      rota::GemmTiles cut = rota::tileGemm(g);
      EXPECT_LT((cut.countM - 1) * cut.tileM, m);
      EXPECT_GE(cut.countM * cut.tileM, m);
      EXPECT_LT((cut.countN - 1) * cut.tileN, n);
      EXPECT_GE(cut.countN * cut.tileN, n);
    }
  }
}

} // namespace
