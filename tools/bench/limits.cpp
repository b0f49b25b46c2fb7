// SPDX-License-Identifier: Apache-2.0
//
// Prints this machine's limits as JSON: `bench-limits [threads]`.
#include "tools/bench/Limits.h"
#include "runtime/device/Cores.h"

#include <cstdio>
#include <cstdlib>

int main(int argc, char **argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : rota::availableCores();
  std::printf("{\"threads\": %d, \"f32_gflops\": %.1f, \"bf16_gflops\": %.1f, "
              "\"copy_gbytes\": %.1f}\n",
              threads, rota::bench::peakMultiplyAdds() * threads,
              rota::bench::peakBf16MultiplyAdds() * threads,
              rota::bench::copyBandwidth(threads));
}
