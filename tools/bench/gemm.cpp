// SPDX-License-Identifier: Apache-2.0
//
// Speed of rotaGemm for the products of a language model's layers, as GF/s and
// as a share of what this machine's fused multiply-adds reach in a loop without
// memory. `bench-gemm [threads] [rows]`.
#include "runtime/device/cpu/Gemm.h"
#include "runtime/device/cpu/Cores.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <vector>

namespace {

double seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Processor time of all threads, which other programs do not lengthen.
double processorSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

struct Time {
  double wall = 1e30, processor = 1e30;
};

/// The best of a few runs, in seconds.
template <typename F> Time best(F &&run) {
  Time least;
  for (int i = 0; i < 7; ++i) {
    double start = seconds(), processorStart = processorSeconds();
    run();
    least.wall = std::min(least.wall, seconds() - start);
    least.processor =
        std::min(least.processor, processorSeconds() - processorStart);
  }
  return least;
}

/// GF/s of independent f32 multiply-adds on one core, in assembly so that none
/// is folded away. Nineteen chains cover the latency of two units.
double peakAvx512() {
  constexpr int kSteps = 1000000;
  Time time = best([] {
    asm volatile("mov %0, %%eax\n"
                 "1:\n"
                 ".irp chain, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18\n"
                 "vfmadd231ps %%zmm31, %%zmm31, %%zmm\\chain\n"
                 ".endr\n"
                 "dec %%eax\n"
                 "jnz 1b\n"
                 :
                 : "i"(kSteps)
                 : "eax", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                   "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
                   "xmm13", "xmm14", "xmm15");
  });
  return 2.0 * 16 * 19 * kSteps / time.processor * 1e-9;
}

struct Case {
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

void measure(RotaContext *context, const Case &item, double peak) {
  const RotaGemm &g = item.gemm;
  Block a = make(g.m * g.k, g.typeA), b = make(g.k * g.n, g.typeB);
  Block c = make(g.m * g.n, g.typeC);
  Time time = best([&] { rotaGemm(context, &g, a.get(), b.get(), c.get()); });
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
  double f32 = __builtin_cpu_supports("avx512f") ? peakAvx512() * threads : 0.0;
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
