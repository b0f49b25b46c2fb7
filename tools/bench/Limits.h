// SPDX-License-Identifier: Apache-2.0
//
// Clocks, and the limits of this machine, of which benchmarks print shares.
#ifndef ROTA_TOOLS_BENCH_LIMITS_H
#define ROTA_TOOLS_BENCH_LIMITS_H

#include <algorithm>

namespace rota::bench {

/// Wall-clock time in seconds.
double seconds();
/// Processor time of all threads in seconds; other programs do not change it.
double processorSeconds();

struct Time {
  double wall = 1e30, processor = 1e30; // seconds
};

/// The runs of which `best` takes the best.
constexpr int kRuns = 7;

/// The best of a few runs.
template <typename F> Time best(F &&run) {
  Time least;
  for (int i = 0; i < kRuns; ++i) {
    double start = seconds(), processorStart = processorSeconds();
    run();
    least.wall = std::min(least.wall, seconds() - start);
    least.processor =
        std::min(least.processor, processorSeconds() - processorStart);
  }
  return least;
}

/// GF/s of independent f32 multiply-adds on one core; 0 without AVX-512 and
/// FMA.
double peakMultiplyAdds();

/// GF/s of independent bf16 multiply-adds that are added in f32, on one core,
/// by AMX where the process may use it, else by AVX512-BF16; without both,
/// twice peakMultiplyAdds(), by which shares are counted.
double peakBf16MultiplyAdds();

/// GB/s, read and written, of copying memory that no cache holds on `threads`
/// threads.
double copyBandwidth(int threads);

} // namespace rota::bench

#endif // ROTA_TOOLS_BENCH_LIMITS_H
