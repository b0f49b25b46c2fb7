// SPDX-License-Identifier: Apache-2.0
//
// rotaGroupedGemm and its gradient against a plain loop in f64: groups of any
// size, blocks, types, transposes and accumulation; the same bits for any
// number of threads; and blocks with too many rows.
#include "runtime/GroupedAbi.h"
#include "runtime/device/Context.h"
#include "test/runtime/GemmCase.h"

#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <tuple>

namespace {

using namespace rota::test;

RotaGroupedGemm describe(int64_t batch, int64_t rows, int64_t experts,
                         int64_t blocks, int64_t in, int64_t out) {
  RotaGroupedGemm g = {};
  g.batch = batch;
  g.rows = rows;
  g.experts = experts;
  g.blocks = blocks;
  g.in = in;
  g.out = out;
  return g;
}

/// The expert of each row, or -1.
std::vector<int64_t> expertsOf(const RotaGroupedGemm &g,
                               const std::vector<int32_t> &counts) {
  std::vector<int64_t> experts(g.batch * g.rows, -1);
  for (int64_t b = 0; b < g.batch; ++b)
    for (int64_t x = 0, row = 0; x < g.experts; ++x) {
      int64_t ofBlock = g.experts / g.blocks;
      if (x % ofBlock == 0)
        row = b * g.rows + x / ofBlock * (g.rows / g.blocks);
      for (int32_t i = 0; i < counts[b * g.experts + x]; ++i)
        experts[row++] = x;
    }
  return experts;
}

/// Compares with what is due, where every number is at most some units.
void expectNear(const Buffer &c, const std::vector<double> &expected,
                const std::vector<double> &magnitude) {
  for (size_t i = 0; i < expected.size(); ++i) {
    double unit = c.type == ROTA_BF16 ? 0x1p-8 : 0;
    double limit = 1e-5 * magnitude[i] + unit * std::abs(expected[i]) + 1e-30;
    ASSERT_NEAR(c.get(i), expected[i], limit) << "element " << i;
  }
}

struct Groups {
  RotaGroupedGemm g;
  std::vector<int32_t> counts;
};

std::vector<Groups> groups() {
  return {
      {describe(1, 1, 1, 1, 1, 1), {1}},
      {describe(2, 10, 3, 1, 7, 5), {4, 0, 6, /**/ 0, 10, 0}},
      {describe(1, 48, 4, 2, 33, 65), {17, 7, 0, 16}},
      {describe(2, 300, 2, 1, 20, 70), {131, 150, /**/ 0, 300}},
      {describe(1, 700, 8, 4, 40, 600), {0, 1, 175, 0, 15, 16, 100, 75}},
      {describe(3, 8, 4, 4, 16, 16), {2, 2, 2, 2, 0, 0, 0, 0, 1, 0, 2, 1}},
      // Rows in place and in copies, of several sequences, in several parts.
      {describe(4, 450, 3, 1, 24, 530),
       {100, 27, 301, /**/ 125, 0, 300, /**/ 90, 127, 140, /**/ 0, 450, 0}}};
}

struct Operands {
  Buffer a, b, c;
};

/// Operands of rotaGroupedGemm, filled.
Operands operandsOf(const RotaGroupedGemm &g) {
  Operands of{Buffer(g.typeA, g.batch * g.rows * g.in),
              Buffer(g.typeA, g.experts * g.in * g.out),
              Buffer(g.typeC, g.batch * g.rows * g.out)};
  of.a.fill(1);
  of.b.fill(2);
  of.c.fill(3);
  return of;
}

/// [type of A and B, type of C, transpose B, accumulate]
class GroupedGemm
    : public testing::TestWithParam<std::tuple<int, int, bool, bool>> {
protected:
  RotaGroupedGemm with(RotaGroupedGemm g) {
    auto [a, c, transposed, accumulate] = GetParam();
    g.typeA = a;
    g.typeC = c;
    g.transposed = transposed;
    g.accumulate = accumulate;
    return g;
  }
};

TEST_P(GroupedGemm, AgreesWithPlainLoop) {
  for (Groups test : groups()) {
    RotaGroupedGemm g = with(test.g);
    SCOPED_TRACE(testing::PrintToString(test.counts));
    auto [a, b, c] = operandsOf(g);
    Buffer before = c;
    rotaGroupedGemm(nullptr, &g, a.bytes.data(), b.bytes.data(),
                    test.counts.data(), nullptr, c.bytes.data());
    std::vector<int64_t> experts = expertsOf(g, test.counts);
    std::vector<double> expected, magnitude;
    for (int64_t row = 0; row < g.batch * g.rows; ++row)
      for (int64_t j = 0; j < g.out; ++j) {
        double sum = g.accumulate ? before.get(row * g.out + j) : 0;
        double all = std::abs(sum);
        for (int64_t i = 0; experts[row] >= 0 && i < g.in; ++i) {
          int64_t at = experts[row] * g.in * g.out +
                       (g.transposed ? j * g.in + i : i * g.out + j);
          sum += a.get(row * g.in + i) * b.get(at);
          all += std::abs(a.get(row * g.in + i) * b.get(at));
        }
        expected.push_back(sum);
        magnitude.push_back(all);
      }
    expectNear(c, expected, magnitude);
  }
}

TEST_P(GroupedGemm, SameBitsForAnyNumberOfThreads) {
  for (Groups test : groups()) {
    RotaGroupedGemm g = with(test.g);
    SCOPED_TRACE(testing::PrintToString(test.counts));
    auto [a, b, c] = operandsOf(g);
    Buffer alone = c;
    rotaGroupedGemm(nullptr, &g, a.bytes.data(), b.bytes.data(),
                    test.counts.data(), nullptr, alone.bytes.data());
    for (int count : {2, 3}) {
      rota::Cores cores(count);
      rota::ComputeToken token(cores);
      RotaContext context;
      context.cores = &cores;
      Buffer together = c;
      rotaGroupedGemm(&context, &g, a.bytes.data(), b.bytes.data(),
                      test.counts.data(), nullptr, together.bytes.data());
      ASSERT_EQ(together.bytes, alone.bytes) << count << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, GroupedGemm,
    testing::Values(std::tuple(ROTA_F32, ROTA_F32, false, false),
                    std::tuple(ROTA_F32, ROTA_F32, true, false),
                    std::tuple(ROTA_F32, ROTA_F32, false, true),
                    std::tuple(ROTA_BF16, ROTA_F32, false, true),
                    std::tuple(ROTA_BF16, ROTA_BF16, true, false),
                    std::tuple(ROTA_BF16, ROTA_BF16, false, false)));

/// [type of A and B, type of C, accumulate]
class GroupedGemmGrad
    : public testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(GroupedGemmGrad, AgreesWithPlainLoop) {
  for (Groups test : groups()) {
    RotaGroupedGemm g = test.g;
    std::tie(g.typeA, g.typeC, g.accumulate) = GetParam();
    SCOPED_TRACE(testing::PrintToString(test.counts));
    Buffer a(g.typeA, g.batch * g.rows * g.in),
        b(g.typeA, g.batch * g.rows * g.out),
        c(g.typeC, g.experts * g.in * g.out);
    a.fill(4);
    b.fill(5);
    c.fill(6);
    std::vector<double> expected, magnitude;
    for (int64_t i = 0; i < g.experts * g.in * g.out; ++i) {
      expected.push_back(g.accumulate ? c.get(i) : 0);
      magnitude.push_back(std::abs(expected.back()));
    }
    std::vector<int64_t> experts = expertsOf(g, test.counts);
    for (int64_t row = 0; row < g.batch * g.rows; ++row)
      for (int64_t i = 0; experts[row] >= 0 && i < g.in; ++i)
        for (int64_t j = 0; j < g.out; ++j) {
          double product = a.get(row * g.in + i) * b.get(row * g.out + j);
          int64_t at = (experts[row] * g.in + i) * g.out + j;
          expected[at] += product;
          magnitude[at] += std::abs(product);
        }
    rotaGroupedGemmGrad(nullptr, &g, a.bytes.data(), b.bytes.data(),
                        test.counts.data(), c.bytes.data());
    expectNear(c, expected, magnitude);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, GroupedGemmGrad,
    testing::Combine(testing::Values(int(ROTA_F32), int(ROTA_BF16)),
                     testing::Values(int(ROTA_F32), int(ROTA_BF16)),
                     testing::Bool()));

TEST(GroupedGemmCounts, MoreRowsThanABlockHasFailTheAction) {
  RotaGroupedGemm g = describe(2, 8, 4, 2, 3, 3);
  std::vector<int32_t> counts = {4, 0, 1, 3, /**/ 0, 0, 2, 3};
  std::vector<float> a(2 * 8 * 3), b(4 * 3 * 3), c(2 * 8 * 3);
  RotaContext context;
  rotaGroupedGemm(&context, &g, a.data(), b.data(), counts.data(), nullptr,
                  c.data());
  EXPECT_TRUE(context.failed);
  EXPECT_EQ(context.failure, "rows of experts 2 to 3 in sequence 1 of a "
                             "microbatch: expected at most 4, got 5");
}

TEST(GroupedGemmCounts, ExpertsAreNumberedAsInTheModel) {
  RotaGroupedGemm g = describe(1, 4, 2, 1, 3, 3);
  std::vector<int32_t> counts = {2, 3};
  std::vector<float> a(4 * 3), b(2 * 3 * 3), c(4 * 3);
  int32_t offset = 6;
  RotaContext context;
  rotaGroupedGemm(&context, &g, a.data(), b.data(), counts.data(), &offset,
                  c.data());
  EXPECT_EQ(context.failure, "rows of experts 6 to 7 in sequence 0 of a "
                             "microbatch: expected at most 4, got 5");
}

} // namespace
