// SPDX-License-Identifier: Apache-2.0
//
// Speed of rotaGemm for the products of a language model's layers, as GF/s and
// as a share of what this machine's fused multiply-adds reach in a loop without
// memory. `bench-gemm [threads] [rows]`.
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/Context.h"
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
  rota::GemmTiles cut = rota::tileGemm(g);
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

} // namespace

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : rota::availableCores();
  int64_t rows = argc > 2 ? std::atoll(argv[2]) : 2048;
  rota::Cores cores(std::max(threads, 1));
  rota::ComputeToken token(cores);
  RotaContext context;
  context.cores = &cores;
  double f32 = rota::bench::peakMultiplyAdds() * threads;
  std::printf("%d threads, f32 peak %.0f GF/s; bf16 counted as twice that\n",
              threads, f32);
  struct Size {
    const char *name;
    int64_t n, k;
  };
  const Size sizes[] = {{"projection", 768, 768},
                        {"gate, up", 2048, 768},
                        {"down", 768, 2048},
                        {"vocabulary", 32000, 768}};
  for (int32_t type : {ROTA_F32, ROTA_BF16}) {
    double peak = type == ROTA_F32 ? f32 : 2 * f32;
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
  }
}
