// SPDX-License-Identifier: Apache-2.0
#include "tools/bench/Limits.h"

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

/// In assembly, so that the compiler removes no work. Nineteen chains cover the
/// latency of two units.
double peakMultiplyAdds() {
  if (!__builtin_cpu_supports("avx512f"))
    return 0.0;
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
