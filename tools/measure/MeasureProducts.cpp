// SPDX-License-Identifier: Apache-2.0
//
// Matrix products by size, in the three forms that the derivative of a layer
// has. Compiled with exceptions.
#include "runtime/device/Context.h"
#include "runtime/device/cpu/Gemm.h"
#include "tools/measure/MeasureHost.h"
#include "tools/measure/Products.h"
#include "tools/measure/Team.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>

namespace rota {
namespace {

using mlir::rota::MeasuredProduct;
using mlir::rota::ProductSize;

enum class CoreUse { OneEach, Shared };

/// Products that are measured alike.
struct ProductList {
  const char *name;
  CoreUse use;
  llvm::ArrayRef<ProductForm> forms; // their times are added up
  llvm::ArrayRef<int64_t> sizes;     // each of m, n, k
  double ProductSize::*tokens;       // which of them counts tokens
  double share;                      // of the time for products
};

/// Forward and input gradient: sizes close together where the rate depends on
/// them. A router multiplies by as few columns as there are experts.
constexpr ProductForm kUsualForms[] = {ProductForm::Forward,
                                       ProductForm::InputGradient};
constexpr int64_t kUsualSizes[] = {8, 64, 128, 256, 512, 2048};
const ProductList kUsual = {"product",   CoreUse::OneEach, kUsualForms,
                            kUsualSizes, &ProductSize::m,  0.25};

/// A third of a layer's products.
constexpr ProductForm kGradientForms[] = {ProductForm::WeightGradient};
constexpr int64_t kGradientSizes[] = {8, 128, 512, 2048};
const ProductList kGradients = {"weight gradient", CoreUse::OneEach,
                                kGradientForms,    kGradientSizes,
                                &ProductSize::k,   0.12};

/// Fewer, since only their ratio to products of a core of their own is taken
/// from them.
constexpr int64_t kSharedSizes[] = {128, 512, 2048};
const ProductList kShared = {"shared",     CoreUse::Shared, kUsualForms,
                             kSharedSizes, &ProductSize::m, 0.13};

/// Fewer tokens are in no task.
constexpr double kLeastTokens = 64;
/// Smaller products take little longer than their call.
constexpr double kLeastFlops = 2.0 * 64 * 64 * 64;
/// Those that are measured first, whatever the time.
constexpr int64_t kFirstSizes[] = {128, 512};

/// One product with operands in `memory`. Each call takes the next of at most
/// so many copies of the right operand, which is as cold as a layer's weights.
/// The left one and the result are as warm as what has just been made, and
/// where others were; what is kept costs more, see Machine::secondsOfKeeping.
/// `cores` divide the product; null: all is done on the calling thread.
Repeated makeProduct(const RotaGemm &gemm, Cores *cores, ProductMemory &memory,
                     int64_t mostCopies = INT64_MAX) {
  struct Work {
    RotaGemm gemm;
    ProductMemory &memory;
    RotaContext context = {};
    int64_t element = gemm.typeB == ROTA_F32 ? 4 : 2;
    int64_t left = element * gemm.m * gemm.k; // bytes, as right
    int64_t right = element * gemm.k * gemm.n;
    int64_t copies, next = 0;

    Work(const RotaGemm &gemm, ProductMemory &memory, int64_t mostCopies)
        : gemm(gemm), memory(memory),
          copies(std::min(mostCopies, copiesOf(right))) {}
  };
  auto work = std::make_shared<Work>(gemm, memory, mostCopies);
  work->context.cores = cores;
  memory.provide(work->left + work->copies * work->right, 4 * gemm.m * gemm.n);
  return [work] {
    multiplyOnCpu(
        &work->context, work->gemm, work->memory.operands->at(0),
        work->memory.operands->at(work->left + work->next * work->right),
        work->memory.results->at(0));
    work->next = (work->next + 1) % work->copies;
  };
}

/// The products of the list: the first sizes, then the others by their work,
/// since rates of small ones differ most.
std::vector<ProductSize> sizesInOrder(const ProductList &list) {
  std::vector<ProductSize> sizes;
  for (int64_t m : list.sizes)
    for (int64_t n : list.sizes)
      for (int64_t k : list.sizes)
        if (ProductSize size = {1, double(m), double(n), double(k)};
            size.*list.tokens >= kLeastTokens && size.flops() >= kLeastFlops)
          sizes.push_back(size);
  auto isFirst = [](const ProductSize &size) {
    return llvm::all_of(
        llvm::ArrayRef({size.m, size.n, size.k}),
        [](double each) { return llvm::is_contained(kFirstSizes, each); });
  };
  auto keyOf = [&](const ProductSize &size) {
    return std::tuple(!isFirst(size), size.flops(), size.m, size.n);
  };
  llvm::sort(sizes, [&](const ProductSize &a, const ProductSize &b) {
    return keyOf(a) < keyOf(b);
  });
  return sizes;
}

/// Seconds of as many products as there are cores in each form of the list, one
/// form after another: a product on each core, or each divided among all cores.
PacedSeconds secondsOfForms(const ProductSize &size, int32_t type,
                            const ProductList &list, HostRounds &host,
                            double seconds) {
  double paces = 0; // what all take at the pace beside them
  Pace pace{std::vector<double>(host.cores)};
  for (ProductForm form : list.forms) {
    RotaGemm gemm = describe(size, form, type);
    auto make = [&](int thread) {
      return makeProduct(gemm, nullptr, host.products[thread]);
    };
    double budget = seconds / double(list.forms.size());
    bool isOwn = list.use == CoreUse::OneEach;
    PacedSeconds each =
        isOwn
            ? pacedTogether(host.cores, budget, make, makePace(host))
            : pacedShared(host.team, budget,
                          makeProduct(gemm, &host.team, host.products.front()),
                          makePace(host));
    paces += (isOwn ? 1 : host.cores) * each.seconds / each.pace.mean();
    pace += each.pace;
  }
  pace /= double(list.forms.size());
  return {paces * pace.mean(), pace};
}

/// Measures the sizes of the list in its share of some `seconds`, but those
/// that do not fit. Adds the rates of those that were not known.
void measureList(std::vector<MeasuredProduct> &products,
                 const ProductList &list, const char *name, int32_t type,
                 HostRounds &host, double seconds) {
  WallClock watch;
  double last = 0;
  std::vector<ProductSize> sizes = sizesInOrder(list);
  for (const auto &[index, size] : llvm::enumerate(sizes)) {
    double left = list.share * seconds - watch.seconds();
    double work = double(list.forms.size()) * size.flops() * host.cores;
    // Warming up and one repetition of each form, where they fit.
    bool isFirst = index < 8; // all of kFirstSizes
    if (!isFirst && 2 * work > left * last)
      continue;
    double each = std::max(left, 0.0) / double(sizes.size() - index) / 2;
    double time = host.times.add(
        fmt::format("{} {} {}x{}x{}", list.name, name, size.m, size.n, size.k),
        secondsOfForms(size, type, list, host, each));
    double rate = last = work / time;
    auto known = llvm::find_if(products, [&](const MeasuredProduct &product) {
      const ProductSize &other = product.size;
      return other.m == size.m && other.n == size.n && other.k == size.k;
    });
    if (known == products.end())
      products.push_back({size, rate});
    else
      known->flopsPerSecond = rate;
  }
}

} // namespace

MakeWork makePace(HostRounds &host) {
  return [&host](int thread) {
    // Smaller ones are slowed down less than a trainer's.
    RotaGemm gemm =
        describe({1, 128, 256, 128}, ProductForm::Forward, ROTA_F32);
    return makeProduct(gemm, nullptr, host.paces[thread], 1);
  };
}

void measureProducts(mlir::rota::Machine &machine, HostRounds &work,
                     double seconds) {
  for (auto [name, type] :
       {std::pair("f32", ROTA_F32), std::pair("bf16", ROTA_BF16)}) {
    mlir::rota::TypeRates &rates = machine.types[name];
    measureList(rates.products, kUsual, name, type, work, seconds);
    measureList(rates.weightGradients, kGradients, name, type, work, seconds);
    if (work.cores > 1)
      measureList(rates.sharedProducts, kShared, name, type, work, seconds);
    rates.flopsPerSecond = 0;
    for (const MeasuredProduct &product : rates.products)
      rates.flopsPerSecond =
          std::max(rates.flopsPerSecond, product.flopsPerSecond);
  }
}

} // namespace rota
