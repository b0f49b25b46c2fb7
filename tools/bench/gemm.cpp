// SPDX-License-Identifier: Apache-2.0
//
// The rate of the three products of weights of published models (Weights.h): of
// the forward, the input's gradient and the weight's gradient, in f32 and bf16,
// as shares of what a core's multiply-adds reach in a loop without memory. Both
// are measured in turn, in processor time. At the end, for each type, how far
// the slowest product is below the median.
#include "runtime/device/cpu/Gemm.h"
#include "runtime/GroupedAbi.h"
#include "runtime/device/Context.h"
#include "runtime/device/Parallel.h"
#include "tools/Median.h"
#include "tools/bench/GemmComparisons.h"
#include "tools/bench/GemmOperands.h"
#include "tools/bench/Limits.h"
#include "tools/bench/Weights.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rota::bench {
namespace {

struct BenchOptions {
  int threads = availableCores();
  std::string type;      // empty: both
  std::string part;      // of the names of weights; empty: all weights
  bool compares = false; // instead of measuring shares
};

const char *nameOf(int32_t type) { return type == ROTA_F32 ? "f32" : "bf16"; }

std::string nameOf(const Weight &weight) {
  return fmt::format("{}, {}", weight.model, weight.name);
}

/// A product's share of the limit.
struct Measured {
  std::string name;
  double share; // percent
};

/// The operands of a weight's products.
class WeightProducts {
public:
  WeightProducts(RotaContext *context, const Weight &weight, int32_t type)
      : context(context), w(weight), type(type), x(w.tokens * w.in, type),
        y(w.tokens * w.out, type), weights(elements(), type),
        gradient(elements(), ROTA_F32) {
    if (w.experts > 0)
      counts = chooseExperts(grouped(false));
  }

  void forward() {
    if (w.experts > 0)
      return multiplyRows(/*isForward=*/true, x, y);
    multiply(
        describe(w.tokens, w.out, w.in, false, !w.isInByOut, type, type, false),
        x, weights, y);
  }
  void inputGradient() {
    if (w.experts > 0)
      return multiplyRows(/*isForward=*/false, y, x);
    multiply(
        describe(w.tokens, w.in, w.out, false, w.isInByOut, type, type, false),
        y, weights, x);
  }
  void weightGradient() {
    if (w.experts > 0)
      return sumRows();
    if (w.isInByOut)
      return multiply(gradientOf(w.in, w.out), x, y, gradient);
    multiply(gradientOf(w.out, w.in), y, x, gradient);
  }

  double operations() const { return 2.0 * double(w.tokens * w.in * w.out); }

private:
  int64_t elements() const {
    return std::max<int64_t>(w.experts, 1) * w.in * w.out;
  }

  RotaGemm gradientOf(int64_t m, int64_t n) const {
    return describe(m, n, w.tokens, true, false, type, ROTA_F32, true);
  }

  void multiply(const RotaGemm &g, const Operand &a, const Operand &b,
                const Operand &c) {
    rotaGemm(context, &g, a.data(), b.data(), c.data());
  }

  /// Of weights that are stored as [experts, out, in].
  RotaGroupedGemm grouped(bool isForward) const {
    return {1,
            w.tokens,
            w.experts,
            1,
            isForward ? w.in : w.out,
            isForward ? w.out : w.in,
            isForward,
            type,
            type,
            0};
  }

  void multiplyRows(bool isForward, const Operand &a, const Operand &c) {
    RotaGroupedGemm g = grouped(isForward);
    rotaGroupedGemm(context, &g, a.data(), weights.data(), counts.data(),
                    nullptr, c.data());
  }

  void sumRows() {
    RotaGroupedGemm g = grouped(/*isForward=*/false);
    g.typeC = ROTA_F32, g.accumulate = 1;
    rotaGroupedGemmGrad(context, &g, y.data(), x.data(), counts.data(),
                        gradient.data());
  }

  RotaContext *context;
  const Weight &w;
  int32_t type;
  Operand x, y, weights, gradient;
  std::vector<int32_t> counts; // of experts
};

/// The least processor time of a few runs, and that of the limit's loop between
/// them: a core's speed changes from second to second.
double shareOf(double operations, FunctionRef<void()> run, int32_t type) {
  constexpr int kLeastRuns = 3, kMostRuns = 7;
  constexpr double kEnough = 0.5; // seconds
  run();                          // compiles the product
  double least = 1e30, limit = 0, spent = 0;
  for (int i = 0; i < kMostRuns && (i < kLeastRuns || spent < kEnough); ++i) {
    double start = processorSeconds();
    run();
    double time = processorSeconds() - start;
    least = std::min(least, time);
    spent += time;
    limit = std::max(limit, type == ROTA_F32 ? peakMultiplyAdds()
                                             : peakBf16MultiplyAdds());
  }
  return 100 * operations / least * 1e-9 / limit;
}

void measure(RotaContext *context, const Weight &weight, int32_t type,
             std::vector<Measured> &all) {
  WeightProducts products(context, weight, type);
  fmt::print("{:4} {:35} {:4} x {:5} -> {:5}", nameOf(type), nameOf(weight),
             weight.tokens, weight.in, weight.out);
  auto add = [&](const char *name, FunctionRef<void()> run) {
    double share = shareOf(products.operations(), run, type);
    fmt::print("  {} {:5.1f} %", name, share);
    std::fflush(stdout);
    all.push_back({fmt::format("{}, {}", nameOf(weight), name), share});
  };
  add("forward", [&] { products.forward(); });
  add("input gradient", [&] { products.inputGradient(); });
  add("weight gradient", [&] { products.weightGradient(); });
  fmt::print("\n");
}

/// The median of all shares of a type and what lies far below it.
std::string summarize(int32_t type, const std::vector<Measured> &all) {
  constexpr double kFar = 10; // percentage points
  std::vector<double> shares;
  for (const Measured &one : all)
    shares.push_back(one.share);
  double middle = median(shares);
  const Measured &least = *std::min_element(
      all.begin(), all.end(),
      [](const Measured &a, const Measured &b) { return a.share < b.share; });
  auto below = std::count_if(shares.begin(), shares.end(), [&](double share) {
    return share < middle - kFar;
  });
  return fmt::format("{}: {} products, median {:.1f} % of the limit, least "
                     "{:.1f} % ({}), {} more than {} points below the median",
                     nameOf(type), all.size(), middle, least.share, least.name,
                     below, kFar);
}

int failUsage() {
  std::fprintf(stderr,
               "usage: bench-gemm [--threads 1..1024] [--type f32|bf16] "
               "[--weights TEXT] [--compare]\n"
               "  --weights  those alone whose model and name, such as "
               "'Llama 110M, down', contain TEXT\n"
               "  --compare  joined weights and rows of experts against "
               "separate ones and even groups\n");
  return 2;
}

std::optional<BenchOptions> parse(int argc, char **argv) {
  BenchOptions options;
  for (int i = 1; i < argc; ++i) {
    std::string_view name = argv[i];
    if (name == "--compare") {
      options.compares = true;
      continue;
    }
    if (i + 1 == argc)
      return std::nullopt;
    std::string value = argv[++i];
    if (name == "--threads")
      options.threads = std::atoi(value.c_str());
    else if (name == "--type" && (value == "f32" || value == "bf16"))
      options.type = value;
    else if (name == "--weights")
      options.part = value;
    else
      return std::nullopt;
  }
  if (options.threads < 1 || options.threads > 1024)
    return std::nullopt;
  return options;
}

int run(const BenchOptions &options) {
  Cores cores(options.threads);
  ComputeToken token(cores);
  RotaContext context;
  context.cores = &cores;
  std::vector<std::string> lines;
  for (int32_t type : {ROTA_F32, ROTA_BF16}) {
    if (!options.type.empty() && options.type != nameOf(type))
      continue;
    if (options.compares) {
      compareGemms(&context, type);
      continue;
    }
    std::vector<Measured> all;
    for (const Weight &weight : kWeights)
      if (nameOf(weight).find(options.part) != std::string::npos)
        measure(&context, weight, type, all);
    if (all.empty())
      return failUsage();
    lines.push_back(summarize(type, all));
  }
  for (const std::string &line : lines)
    fmt::print("{}\n", line);
  return 0;
}

} // namespace
} // namespace rota::bench

int main(int argc, char **argv) {
  auto options = rota::bench::parse(argc, argv);
  return options ? rota::bench::run(*options) : rota::bench::failUsage();
}
