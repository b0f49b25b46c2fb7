// SPDX-License-Identifier: Apache-2.0
//
// How work of one rank, and tokens of many, scale with cores:
//   bench-scaling [--threads N]
// A line for 1, 2, 4, ... cores, up to all of this process or N. With more than
// those of the process speed would say nothing: for them it prints how often
// the mutex of Cores is taken, which must not grow.
#include "runtime/device/Context.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "tools/bench/Limits.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using namespace rota;

namespace {

/// Operands of measurements, of f32.
struct ScalingOperands {
  static constexpr int64_t kSize = 2048;     // of a square product
  static constexpr int64_t kRows = 1 << 15;  // of a kernel
  static constexpr int64_t kWidth = 1 << 10; // elements of a row
  std::vector<float> a = std::vector<float>(kSize * kSize, 1.0f);
  std::vector<float> b = std::vector<float>(kSize * kSize, 1.0f);
  std::vector<float> c = std::vector<float>(kSize * kSize, 0.0f);
  std::vector<float> x = std::vector<float>(kRows * kWidth, 1.0f);
  std::vector<float> y = std::vector<float>(kRows * kWidth, 2.0f);
};

/// GF/s of a square product.
double productSpeed(RotaContext &context, ScalingOperands &operands) {
  constexpr int64_t n = ScalingOperands::kSize;
  RotaGemm gemm = {};
  gemm.batch = 1;
  gemm.m = gemm.n = gemm.k = n;
  gemm.lda = gemm.ldb = gemm.ldc = n;
  gemm.typeA = gemm.typeB = gemm.typeC = ROTA_F32;
  auto run = [&] {
    cpuDevice().multiply(&context, gemm, operands.a.data(), operands.b.data(),
                         operands.c.data());
  };
  run();
  return 2e-9 * n * n * n / bench::best(run).wall;
}

/// y = 0.5 x + y by rows.
void addRows(void *const *args, int64_t begin, int64_t end) {
  auto *x = static_cast<const float *>(args[0]);
  auto *y = static_cast<float *>(args[1]);
  for (int64_t i = begin * ScalingOperands::kWidth;
       i < end * ScalingOperands::kWidth; ++i)
    y[i] += 0.5f * x[i];
}

/// GB/s, read and written, of a kernel over memory that no cache holds.
double kernelSpeed(RotaContext &context, ScalingOperands &operands) {
  void *args[] = {operands.x.data(), operands.y.data()};
  auto run = [&] {
    cpuDevice().launch(&context, toKernel(addRows), args,
                       ScalingOperands::kRows, 1);
  };
  run();
  return 12e-9 * ScalingOperands::kRows * ScalingOperands::kWidth /
         bench::best(run).wall;
}

/// What loops and tokens cost.
struct Overhead {
  double loop = 0.0, action = 0.0;           // seconds
  double loopLocks = 0.0, actionLocks = 0.0; // the mutex is taken so often
};

/// An empty loop that asks for all helpers, and empty actions of twice as many
/// ranks as cores.
Overhead measureOverhead(int threads) {
  constexpr int kLoops = 500, kActions = 200;
  Overhead overhead;
  Cores cores(threads);
  {
    ComputeToken token(cores);
    int64_t locks = cores.timesLocked();
    double wall = bench::best([&] {
                    for (int i = 0; i < kLoops; ++i)
                      cores.run(8 * threads, [](int64_t) {});
                  }).wall;
    overhead.loop = wall / kLoops;
    overhead.loopLocks =
        double(cores.timesLocked() - locks) / (bench::kRuns * kLoops);
  }
  int64_t locks = cores.timesLocked();
  double start = bench::seconds();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2 * threads; ++rank)
    ranks.emplace_back([&] {
      for (int i = 0; i < kActions; ++i)
        ComputeToken token(cores);
    });
  for (std::thread &rank : ranks)
    rank.join();
  double actions = 2.0 * threads * kActions;
  overhead.action = (bench::seconds() - start) / actions;
  overhead.actionLocks = double(cores.timesLocked() - locks) / actions;
  return overhead;
}

void measure(int threads, ScalingOperands &operands) {
  static double firstProduct = 0.0, firstKernel = 0.0;
  double product = 0.0, kernel = 0.0;
  {
    Cores cores(threads);
    RotaContext context;
    context.device = &cpuDevice();
    context.cores = &cores;
    ComputeToken token(cores);
    product = productSpeed(context, operands);
    kernel = kernelSpeed(context, operands);
  }
  if (threads == 1) {
    firstProduct = product;
    firstKernel = kernel;
  }
  Overhead overhead = measureOverhead(threads);
  std::printf("%5d %9.1f %5.0f%% %9.1f %5.2f %10.2f %10.2f\n", threads, product,
              100 * product / threads / firstProduct, kernel,
              kernel / firstKernel, overhead.loop * 1e6, overhead.action * 1e6);
}

} // namespace

int main(int argc, char **argv) {
  int available = availableCores(), most = available;
  if (argc == 3 && std::string(argv[1]) == "--threads")
    most = std::atoi(argv[2]);
  if (most < 1 || most > 1024 || argc == 2 || argc > 3) {
    std::fprintf(stderr, "usage: bench-scaling [--threads 1..1024]\n");
    return 2;
  }
  std::printf(
      "product: f32, GF/s, share of as many single cores; kernel: GB/s, "
      "times one core;\nloop: us of an empty one; action: us, by twice "
      "as many ranks as cores\n"
      "cores   product  eff.    kernel times       loop     action\n");
  ScalingOperands operands;
  int threads = 1;
  for (; threads < std::min(most, available); threads *= 2)
    measure(threads, operands);
  measure(std::min(most, available), operands);
  if (most <= available)
    return 0;
  std::printf("beyond the %d cores of this process nothing is timed; the mutex "
              "is taken, by all threads together\n"
              "cores  in a loop  in an action\n",
              available);
  for (threads = 1; threads < 2 * most; threads *= 2) {
    int count = std::min(threads, most);
    Overhead overhead = measureOverhead(count);
    std::printf("%5d %10.2f %13.2f\n", count, overhead.loopLocks,
                overhead.actionLocks);
  }
}
