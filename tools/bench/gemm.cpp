// SPDX-License-Identifier: Apache-2.0
//
// Speed of rotaGemm for the products of a language model's layers, as GF/s and
// as a share of what this machine's fused multiply-adds reach in a loop without
// memory; of products of rows of experts beside those of groups of equal size.
// `bench-gemm [threads] [rows]`.
#include "runtime/device/cpu/Gemm.h"
#include "runtime/GroupedAbi.h"
#include "runtime/device/Context.h"
#include "runtime/device/Parallel.h"
#include "tools/bench/Limits.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

namespace {

struct GemmCase {
  const char *name;
  RotaGemm gemm;
};

RotaGemm describe(int64_t m, int64_t n, int64_t k, bool ta, bool tb,
                  int32_t type, int32_t typeC, bool accumulate) {
  RotaGemm g = {};
  g.batch = 1, g.m = m, g.n = n, g.k = k;
  g.lda = ta ? m : k, g.ldb = tb ? k : n, g.ldc = n;
  g.transposeA = ta, g.transposeB = tb;
  g.typeA = g.typeB = type, g.typeC = typeC;
  g.accumulate = accumulate;
  return g;
}

using Block = std::unique_ptr<void, decltype(&std::free)>;

/// Memory of half-precision-safe values: every element is about 1.
Block make(int64_t elements, int32_t type) {
  size_t bytes = (elements * (type == ROTA_F32 ? 4 : 2) + 4095) / 4096 * 4096;
  Block block(std::aligned_alloc(4096, bytes), std::free);
  std::fill_n(static_cast<uint16_t *>(block.get()), bytes / 2, 0x3f80);
  return block;
}

void measure(RotaContext *context, const GemmCase &item, double peak) {
  const RotaGemm &g = item.gemm;
  Block a = make(g.m * g.k, g.typeA), b = make(g.k * g.n, g.typeB);
  Block c = make(g.m * g.n, g.typeC);
  rota::bench::Time time = rota::bench::best(
      [&] { rotaGemm(context, &g, a.get(), b.get(), c.get()); });
  double work = 2.0 * g.m * g.n * g.k * 1e-9, rate = work / time.wall;
  rota::GemmTiles cut = rota::tileGemm(g, rota::threadLimit(context));
  std::printf("%-16s %5ld %5ld %5ld %s %s->%s%s tiles %ldx%ld of %ldx%ld "
              "%9.3f ms %7.1f GF/s %5.1f %%, %6.1f GF/s a core\n",
              item.name, long(g.m), long(g.n), long(g.k),
              g.transposeA ? (g.transposeB ? "TT" : "TN")
                           : (g.transposeB ? "NT" : "NN"),
              g.typeA == ROTA_F32 ? "f32 " : "bf16",
              g.typeC == ROTA_F32 ? "f32 " : "bf16", g.accumulate ? "+" : " ",
              long(cut.countM), long(cut.countN), long(cut.tileM),
              long(cut.tileN), time.wall * 1e3, rate, 100.0 * rate / peak,
              work / time.processor);
  std::fflush(stdout);
}

/// The products that `parts` weights of [n, k] with one input have in a layer,
/// against those of one weight of [parts * n, k].
void compareJoined(RotaContext *context, const char *name, int64_t parts,
                   int64_t rows, int64_t n, int64_t k, int32_t type) {
  int64_t all = parts * n;
  Block x = make(rows * k, type), w = make(all * k, type);
  Block y = make(rows * all, type), dw = make(all * k, ROTA_F32);
  auto forward = [&](int64_t width) {
    RotaGemm g = describe(rows, width, k, false, true, type, type, false);
    rotaGemm(context, &g, x.get(), w.get(), y.get());
  };
  auto inputGradient = [&](int64_t width, bool adds) {
    RotaGemm g = describe(rows, k, width, false, false, type, type, adds);
    rotaGemm(context, &g, y.get(), w.get(), x.get());
  };
  auto weightGradient = [&](int64_t width) {
    RotaGemm g = describe(width, k, rows, true, false, type, ROTA_F32, true);
    rotaGemm(context, &g, y.get(), x.get(), dw.get());
  };
  // In turn: a slow minute of the machine affects both.
  auto ratio = [&](auto apart, auto joined) {
    double best[2] = {1e9, 1e9};
    for (int round = 0; round < 5; ++round) {
      best[0] = std::min(best[0], rota::bench::best(apart).processor);
      best[1] = std::min(best[1], rota::bench::best(joined).processor);
    }
    return best[1] / best[0];
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
  std::vector<int32_t> counts(g.batch * g.experts);
  uint64_t state = 1;
  for (int64_t row = 0; row < g.batch * g.rows; ++row) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    ++counts[row / g.rows * g.experts + int64_t((state >> 33) % g.experts)];
  }
  int64_t rows = g.batch * g.rows;
  Block a = make(rows * g.in, g.typeA), c = make(rows * g.out, g.typeA);
  Block b = make(g.experts * g.in * g.out, g.typeA);
  Block gradient = make(g.experts * g.in * g.out, ROTA_F32);
  RotaGemm even = describe(rows / g.experts, g.out, g.in, false,
                           g.transposed != 0, g.typeA, g.typeC, false);
  even.batch = g.experts, even.strideA = even.m * g.in;
  even.strideB = g.in * g.out, even.strideC = even.m * g.out;
  RotaGemm evenGradient = describe(g.in, g.out, rows / g.experts, true, false,
                                   g.typeA, ROTA_F32, true);
  evenGradient.batch = g.experts, evenGradient.strideA = even.strideA;
  evenGradient.strideB = even.strideC, evenGradient.strideC = even.strideB;
  RotaGroupedGemm grouped = g;
  auto time = [](auto body) { return rota::bench::best(body).processor; };
  double seconds[] = {
      time([&] {
        rotaGroupedGemm(context, &grouped, a.get(), b.get(), counts.data(),
                        nullptr, c.get());
      }),
      time([&] { rotaGemm(context, &even, a.get(), b.get(), c.get()); }), 0, 0};
  grouped.accumulate = 1, grouped.typeC = ROTA_F32;
  seconds[2] = time([&] {
    rotaGroupedGemmGrad(context, &grouped, a.get(), c.get(), counts.data(),
                        gradient.get());
  });
  seconds[3] = time([&] {
    rotaGemm(context, &evenGradient, a.get(), c.get(), gradient.get());
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

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : rota::availableCores();
  int64_t rows = argc > 2 ? std::atoll(argv[2]) : 2048;
  rota::Cores cores(std::max(threads, 1));
  rota::ComputeToken token(cores);
  RotaContext context;
  context.cores = &cores;
  double f32 = rota::bench::peakMultiplyAdds() * threads;
  double bf16 = rota::bench::peakBf16MultiplyAdds() * threads;
  std::printf("%d threads, peak %.0f GF/s of f32, %.0f of bf16\n", threads, f32,
              bf16);
  struct Size {
    const char *name;
    int64_t n, k;
  };
  const Size sizes[] = {{"projection", 768, 768},
                        {"gate, up", 2048, 768},
                        {"down", 768, 2048},
                        {"vocabulary", 32000, 768}};
  for (int32_t type : {ROTA_F32, ROTA_BF16}) {
    double peak = type == ROTA_F32 ? f32 : bf16;
    for (const Size &s : sizes) {
      std::printf("%s\n", s.name);
      measure(&context,
              {"  forward",
               describe(rows, s.n, s.k, false, true, type, type, false)},
              peak);
      measure(&context,
              {"  input gradient",
               describe(rows, s.k, s.n, false, false, type, type, false)},
              peak);
      measure(&context,
              {"  weight gradient",
               describe(s.n, s.k, rows, true, false, type, ROTA_F32, true)},
              peak);
    }
    measure(&context,
            {"tiny", describe(128, 28, 28, false, false, type, type, false)},
            peak);
    compareJoined(&context, "query, key, value", 3, rows, 768, 768, type);
    compareJoined(&context, "gate, up", 2, rows, 2048, 768, type);
    compareExperts(&context, type);
  }
}
