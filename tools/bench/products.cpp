// SPDX-License-Identifier: Apache-2.0
//
// The rate of each product of a training step alone, with warm and with cold
// operands: `bench-products THREADS PRODUCT...` with products as `--profile`
// names them, and prints JSON lines. A product with a transposed A is the
// gradient of a weight, whose C is f32; the C of others has the type of A.
#include "runtime/device/Context.h"
#include "runtime/device/cpu/Gemm.h"
#include "runtime/program/GemmName.h"
#include "tools/Median.h"
#include "tools/bench/GemmOperands.h"
#include "tools/bench/Limits.h"
#include "tools/bench/TlbMisses.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <sys/mman.h>
#include <vector>

namespace {

using rota::bench::Operand;

constexpr int kRounds = 7;

/// The product that gemmName gave this name.
std::optional<RotaGemm> parse(const char *name) {
  RotaGemm g = {};
  long sizes[4];
  char a, b, type[5];
  if (std::sscanf(name, "gemm %ldx%ldx%ldx%ld %c%c %4s", &sizes[0], &sizes[1],
                  &sizes[2], &sizes[3], &a, &b, type) != 7)
    return std::nullopt;
  g.batch = sizes[0], g.m = sizes[1], g.n = sizes[2], g.k = sizes[3];
  g.transposeA = a == 'T', g.transposeB = b == 'T';
  g.lda = g.transposeA ? g.m : g.k, g.ldb = g.transposeB ? g.k : g.n;
  g.ldc = g.n;
  g.strideA = g.m * g.k, g.strideB = g.k * g.n, g.strideC = g.m * g.n;
  g.typeA = g.typeB = std::strcmp(type, "f32") == 0 ? ROTA_F32 : ROTA_BF16;
  g.typeC = g.transposeA ? ROTA_F32 : g.typeA;
  g.accumulate = std::strstr(name, " accumulate") != nullptr;
  if (rota::gemmName(g) != name)
    return std::nullopt;
  return g;
}

/// More small pages than a TLB has places for.
class Pages {
public:
  Pages()
      : pages(static_cast<volatile char *>(
            mmap(nullptr, kCount * kBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    madvise(const_cast<char *>(pages), kCount * kBytes, MADV_NOHUGEPAGE);
  }

  /// Writes to each page, many times, so that all threads take part.
  void walk(RotaContext *context) const {
    rota::parallelPieces(context, 16 * rota::threadLimit(context),
                         [&](int64_t) {
                           for (int64_t page = 0; page < kCount; ++page)
                             pages[page * kBytes + page % 64 * 64] = 1;
                         });
  }

private:
  static constexpr int64_t kCount = 8192, kBytes = 4096;
  volatile char *pages;
};

struct Samples {
  std::vector<double> seconds, misses;
};

/// Prints a product's line.
void measure(RotaContext *context, const RotaGemm &g, const Pages &pages,
             const rota::bench::TlbMisses &tlb) {
  Operand a(g.batch * g.strideA, g.typeA), b(g.batch * g.strideB, g.typeB);
  Operand c(g.batch * g.strideC, g.typeC);
  auto run = [&](Samples &samples) {
    int64_t misses = tlb.read();
    double start = rota::bench::seconds();
    rotaGemm(context, &g, a.data(), b.data(), c.data());
    samples.seconds.push_back(rota::bench::seconds() - start);
    samples.misses.push_back(double(tlb.read() - misses));
  };
  Samples first, cold, warm;
  run(first); // compiles the product
  for (int round = 0; round < kRounds; ++round) {
    for (const Operand *operand : {&a, &b, &c})
      operand->flush();
    pages.walk(context);
    run(cold);
    run(warm);
  }
  std::string misses;
  if (!tlb.fault())
    misses = fmt::format(", \"warm_tlb_misses\": {:.0f}, "
                         "\"cold_tlb_misses\": {:.0f}",
                         rota::median(warm.misses), rota::median(cold.misses));
  fmt::print("{{\"name\": \"{}\", \"flops\": {:.0f}, \"warm_seconds\": {:.9f}, "
             "\"cold_seconds\": {:.9f}{}}}\n",
             rota::gemmName(g), rota::gemmOperations(g),
             rota::median(warm.seconds), rota::median(cold.seconds), misses);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  rota::bench::TlbMisses tlb; // before the threads that it counts
  rota::Cores cores(argc > 1 ? std::max(std::atoi(argv[1]), 1) : 1);
  rota::ComputeToken token(cores);
  RotaContext context;
  context.cores = &cores;
  Pages pages;
  fmt::print("{{\"tlb_misses\": \"{}\"}}\n", tlb.fault().value_or("counted"));
  for (int i = 2; i < argc; ++i) {
    auto gemm = parse(argv[i]);
    if (!gemm) {
      std::fprintf(stderr, "expected the name of a product, got '%s'\n",
                   argv[i]);
      return 2;
    }
    measure(&context, *gemm, pages, tlb);
  }
}
