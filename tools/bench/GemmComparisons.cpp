// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/GemmComparisons.h"
#include "runtime/GroupedAbi.h"
#include "tools/bench/GemmOperands.h"
#include "tools/bench/Limits.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace rota::bench {
namespace {

/// The products that `parts` weights of [n, k] with one input have in a layer,
/// against those of one weight of [parts * n, k].
void compareJoined(RotaContext *context, const char *name, int64_t parts,
                   int64_t rows, int64_t n, int64_t k, int32_t type) {
  int64_t all = parts * n;
  Operand x(rows * k, type), w(all * k, type);
  Operand y(rows * all, type), dw(all * k, ROTA_F32);
  auto forward = [&](int64_t width) {
    RotaGemm g = describe(rows, width, k, false, true, type, type, false);
    rotaGemm(context, &g, x.data(), w.data(), y.data());
  };
  auto inputGradient = [&](int64_t width, bool adds) {
    RotaGemm g = describe(rows, k, width, false, false, type, type, adds);
    rotaGemm(context, &g, y.data(), w.data(), x.data());
  };
  auto weightGradient = [&](int64_t width) {
    RotaGemm g = describe(width, k, rows, true, false, type, ROTA_F32, true);
    rotaGemm(context, &g, y.data(), x.data(), dw.data());
  };
  // In turn: a slow minute of the machine affects both.
  auto ratio = [&](auto apart, auto joined) {
    double least[2] = {1e9, 1e9};
    for (int round = 0; round < 5; ++round) {
      least[0] = std::min(least[0], best(apart).processor);
      least[1] = std::min(least[1], best(joined).processor);
    }
    return least[1] / least[0];
  };
  auto each = [&](auto body) {
    for (int64_t part = 0; part < parts; ++part)
      body(part);
  };
  double ratios[] = {
      ratio([&] { each([&](int64_t) { forward(n); }); }, [&] { forward(all); }),
      ratio([&] { each([&](int64_t part) { inputGradient(n, part > 0); }); },
            [&] { inputGradient(all, false); }),
      ratio([&] { each([&](int64_t) { weightGradient(n); }); },
            [&] { weightGradient(all); })};
  std::printf("%-16s %s: joined / apart: forward %.3f, input gradient %.3f, "
              "weight gradient %.3f\n",
              name, type == ROTA_F32 ? "f32" : "bf16", ratios[0], ratios[1],
              ratios[2]);
  std::fflush(stdout);
}

/// Products of the rows of `experts` experts in `sequences` sequences, whose
/// tokens choose experts at random, against those of as many rows for each
/// expert in one sequence without a rest.
void compareGrouped(RotaContext *context, const RotaGroupedGemm &g) {
  std::vector<int32_t> counts = chooseExperts(g);
  int64_t rows = g.batch * g.rows;
  Operand a(rows * g.in, g.typeA), c(rows * g.out, g.typeA);
  Operand b(g.experts * g.in * g.out, g.typeA);
  Operand gradient(g.experts * g.in * g.out, ROTA_F32);
  RotaGemm even = describe(rows / g.experts, g.out, g.in, false,
                           g.transposed != 0, g.typeA, g.typeC, false);
  even.batch = g.experts, even.strideA = even.m * g.in;
  even.strideB = g.in * g.out, even.strideC = even.m * g.out;
  RotaGemm evenGradient = describe(g.in, g.out, rows / g.experts, true, false,
                                   g.typeA, ROTA_F32, true);
  evenGradient.batch = g.experts, evenGradient.strideA = even.strideA;
  evenGradient.strideB = even.strideC, evenGradient.strideC = even.strideB;
  RotaGroupedGemm grouped = g;
  auto time = [](auto body) { return best(body).processor; };
  double seconds[] = {
      time([&] {
        rotaGroupedGemm(context, &grouped, a.data(), b.data(), counts.data(),
                        nullptr, c.data());
      }),
      time([&] { rotaGemm(context, &even, a.data(), b.data(), c.data()); }), 0,
      0};
  grouped.accumulate = 1, grouped.typeC = ROTA_F32;
  seconds[2] = time([&] {
    rotaGroupedGemmGrad(context, &grouped, a.data(), c.data(), counts.data(),
                        gradient.data());
  });
  seconds[3] = time([&] {
    rotaGemm(context, &evenGradient, a.data(), c.data(), gradient.data());
  });
  double work = 2.0 * double(rows * g.in * g.out) * 1e-9;
  std::printf(
      "%3ld experts, %ld x %4ld rows of %4ld -> %4ld %s %s: %6.1f GF/s, "
      "even groups / these %.3f; gradient %6.1f GF/s, %.3f\n",
      long(g.experts), long(g.batch), long(g.rows), long(g.in), long(g.out),
      g.transposed ? "NT" : "NN", g.typeA == ROTA_F32 ? "f32 " : "bf16",
      work / seconds[0], seconds[1] / seconds[0], work / seconds[2],
      seconds[3] / seconds[2]);
  std::fflush(stdout);
}

void compareExperts(RotaContext *context, int32_t type) {
  struct Size {
    int64_t sequences, rows, experts, in, out;
  };
  for (const Size &s :
       {Size{4, 256, 8, 192, 256}, Size{4, 1024, 8, 512, 1408},
        Size{1, 8192, 8, 1024, 2048}, Size{2, 4096, 64, 1024, 512}})
    for (int transposed : {0, 1})
      compareGrouped(context, {s.sequences, s.rows, s.experts, 1, s.in, s.out,
                               transposed, type, type, 0});
}

} // namespace

void compareGemms(RotaContext *context, int32_t type) {
  constexpr int64_t kTokens = 2048;
  compareJoined(context, "query, key, value", 3, kTokens, 768, 768, type);
  compareJoined(context, "gate, up", 2, kTokens, 2048, 768, type);
  compareExperts(context, type);
}

} // namespace rota::bench
