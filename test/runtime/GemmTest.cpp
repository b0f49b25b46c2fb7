// SPDX-License-Identifier: Apache-2.0
//
// rotaGemm against a plain loop in f64: types, transposes, accumulation, odd
// sizes, gaps between rows and batches; and the same bits for any number of
// threads.
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/Context.h"
#include "test/runtime/GemmCase.h"

#include <gtest/gtest.h>
#include <string>
#include <tuple>

namespace {

using namespace rota::test;

/// Runs the product and compares each element, and that the gaps are as before.
void check(const RotaGemm &g, RotaContext *context = nullptr) {
  Operands in(g);
  Buffer c = in.c;
  rotaGemm(context, &g, in.a.bytes.data(), in.b.bytes.data(), c.bytes.data());
  expectProduct(g, in, c);
}

/// [type of A, type of B, type of C, transpose A, transpose B, accumulate]
class GemmKinds : public testing::TestWithParam<
                      std::tuple<int, int, int, bool, bool, bool>> {
protected:
  RotaGemm of(int64_t batch, int64_t m, int64_t n, int64_t k, int64_t gap) {
    auto [a, b, c, ta, tb, accumulate] = GetParam();
    return describeGemm(batch, m, n, k, ta, tb, a, b, c, accumulate, gap);
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
  rota::GemmTiles cut = rota::tileGemm(g, /*threads=*/3);
  ASSERT_GT(cut.countM * cut.countN, 1);
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
  check(describeGemm(1, 1030, 517, 40, false, true, ROTA_F32, ROTA_F32,
                     ROTA_F32, false, 0),
        &context);
  check(describeGemm(1, 517, 1030, 40, true, false, ROTA_BF16, ROTA_BF16,
                     ROTA_F32, true, 0),
        &context);
}

TEST(GemmTest, PanelsOfWholeRows) {
  RotaGemm g = describeGemm(1, 1100, 70, 40, false, true, ROTA_F32, ROTA_F32,
                            ROTA_F32, false, 0);
  ASSERT_EQ(rota::tileGemm(g, 1).countN, 1);
  ASSERT_GT(rota::tileGemm(g, 1).countM, 2);
  check(g);
  check(describeGemm(2, 300, 70, 40, false, true, ROTA_F32, ROTA_F32, ROTA_F32,
                     true, 0));
}

/// Rows that share places in the caches, in blocks of k where they are copied.
TEST(GemmTest, CrowdedRows) {
  for (int form = 0; form < 8; ++form)
    check(describeGemm(1, 200, 200, 1100, form & 1, form & 2, ROTA_F32,
                       ROTA_F32, ROTA_F32, form & 4, /*gap=*/824));
}

TEST(GemmTest, EmptySumClearsUnlessItAccumulates) {
  RotaGemm g = describeGemm(2, 3, 4, 0, false, false, ROTA_F32, ROTA_F32,
                            ROTA_F32, false, 2);
  check(g);
  g.accumulate = 1;
  check(g);
}

TEST(GemmTest, EmptyResultTouchesNothing) {
  RotaGemm g = describeGemm(1, 0, 4, 5, false, false, ROTA_F32, ROTA_F32,
                            ROTA_F32, false, 0);
  rotaGemm(nullptr, &g, nullptr, nullptr, nullptr);
}

TEST(GemmTest, WrongDescriptionIsReported) {
  RotaContext context;
  RotaGemm g = describeGemm(1, 4, 4, 8, false, false, ROTA_F32, ROTA_F32,
                            ROTA_F32, false, 0);
  g.lda = 7;
  float memory[64] = {};
  rotaGemm(&context, &g, memory, memory, memory);
  EXPECT_TRUE(context.failed);
  EXPECT_EQ(context.failure, "gemm of 4 x 4 x 8, f32 by f32 to f32: expected "
                             "an A row distance of at least 8, got 7");
}

TEST(GemmTest, MoreShapesThanTheCacheHolds) {
  for (int64_t n = 1; n <= 300; ++n)
    check(describeGemm(1, 2, n, 3, false, false, ROTA_F32, ROTA_F32, ROTA_F32,
                       false, 0));
}

TEST(GemmTest, TilesCoverTheResult) {
  for (int64_t m : {1, 28, 255, 512, 513, 2048, 32000})
    for (int64_t n : {1, 64, 768, 2050, 32000})
      for (int32_t type : {ROTA_F32, ROTA_BF16})
        for (int threads : {1, 2, 64}) {
          RotaGemm g = describeGemm(1, m, n, 768, false, false, type, type,
                                    type, false, 0);
          rota::GemmTiles cut = rota::tileGemm(g, threads);
          EXPECT_LT((cut.countM - 1) * cut.tileM, m);
          EXPECT_GE(cut.countM * cut.tileM, m);
          EXPECT_LT((cut.countN - 1) * cut.tileN, n);
          EXPECT_GE(cut.countN * cut.tileN, n);
        }
}

} // namespace
