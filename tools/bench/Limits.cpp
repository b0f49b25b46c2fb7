// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/Limits.h"
#include "runtime/device/cpu/PanelKernels.h"

#include <chrono>
#include <cstring>
#include <ctime>
#include <thread>
#include <vector>

namespace rota::bench {

double seconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double processorSeconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

/// A million rounds of independent chains of one instruction, enough of them
/// for the latency of two units. In assembly, so that the compiler removes no
/// work.
#define ROTA_RUN_CHAINS(INSTRUCTION, REGISTER, SOURCE, CHAINS)                 \
  asm volatile("mov $1000000, %%eax\n"                                         \
               "1:\n"                                                          \
               ".irp chain, " CHAINS "\n" INSTRUCTION " %%" REGISTER SOURCE    \
               ", %%" REGISTER SOURCE ", %%" REGISTER "\\chain\n"              \
               ".endr\n"                                                       \
               "dec %%eax\n"                                                   \
               "jnz 1b\n"                                                      \
               :                                                               \
               :                                                               \
               : "eax", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",  \
                 "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",    \
                 "xmm13", "xmm14", "xmm15")

/// GF/s of `run`, which has that many operations for each of its rounds.
template <typename F> static double rateOf(double operations, F run) {
  return operations * 1e6 / best(run).processor * 1e-9;
}

double peakMultiplyAdds() {
  if (__builtin_cpu_supports("avx512f"))
    return rateOf(2.0 * 16 * 19, [] {
      ROTA_RUN_CHAINS("vfmadd231ps", "zmm", "31",
                      "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18");
    });
  if (__builtin_cpu_supports("fma"))
    return rateOf(2.0 * 8 * 13, [] {
      ROTA_RUN_CHAINS("vfmadd231ps", "ymm", "15",
                      "0,1,2,3,4,5,6,7,8,9,10,11,12");
    });
  return 0.0;
}

/// Six chains, for the latency of 52 cycles of a product that takes 16.
static double peakTileMultiplyAdds() {
  const PanelKernels &kernels = panelKernelsOfAmx();
  kernels.begin();
  double rate = rateOf(2.0 * 16 * 16 * 32 * 6, [] {
    asm volatile("mov $1000000, %%eax\n"
                 "1:\n"
                 ".irp chain, 0,1,2,3,4,5\n"
                 "tdpbf16ps %%tmm7, %%tmm6, %%tmm\\chain\n"
                 ".endr\n"
                 "dec %%eax\n"
                 "jnz 1b\n"
                 :
                 :
                 : "eax", "cc");
  });
  kernels.end();
  return rate;
}

double peakBf16MultiplyAdds() {
  if (mayUseAmx())
    return peakTileMultiplyAdds();
  if (!__builtin_cpu_supports("avx512bf16"))
    return 2.0 * peakMultiplyAdds();
  return rateOf(2.0 * 32 * 19, [] {
    ROTA_RUN_CHAINS("vdpbf16ps", "zmm", "31",
                    "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18");
  });
}

double copyBandwidth(int threads) {
  constexpr size_t kBytes = size_t(128) << 20; // per thread
  std::vector<char> from(threads * kBytes, 1), to(threads * kBytes, 2);
  Time time = best([&] {
    std::vector<std::thread> workers;
    for (int i = 0; i < threads; ++i)
      workers.emplace_back([&, i] {
        std::memcpy(to.data() + i * kBytes, from.data() + i * kBytes, kBytes);
      });
    for (std::thread &worker : workers)
      worker.join();
  });
  return 2.0 * threads * kBytes / time.wall * 1e-9;
}

} // namespace rota::bench
