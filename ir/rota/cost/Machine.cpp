// SPDX-License-Identifier: Apache-2.0
#include "ir/rota/cost/Machine.h"
#include "ir/rota/OpFamily.h"
#include "ir/rota/Rota.h"
#include "ir/rota/attention/SeenPairs.h"
#include "ir/rota/experts/Experts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::rota;

/// The usual types by hand: a choice of shardings asks for many rates, and MLIR
/// prints a type slowly.
static std::string nameOf(Type elementType) {
  if (elementType.isF32())
    return "f32";
  if (elementType.isBF16())
    return "bf16";
  std::string name;
  llvm::raw_string_ostream(name) << elementType;
  return name;
}

static const TypeRates *ratesOf(const Machine &machine, StringRef elementType) {
  auto found = machine.types.find(elementType.str());
  return found == machine.types.end() ? nullptr : &found->second;
}

static double peakOf(const Machine &machine, const TypeRates *rates) {
  return rates ? rates->flopsPerSecond : machine.rowFlopsPerSecond;
}

double Machine::peakOf(StringRef elementType) const {
  return ::peakOf(*this, ratesOf(*this, elementType));
}

double Machine::peakOf(Type elementType) const {
  return peakOf(nameOf(elementType));
}

/// Seconds of a product in tiles: each unit computes one after another, and all
/// wait for those of the last wave.
static double secondsInTiles(const ProductSize &size, const ProductTile &tile,
                             double unitPeak, double units, double depth) {
  double tiles = size.batch * std::ceil(size.m / double(tile.m)) *
                 std::ceil(size.n / double(tile.n));
  double flops = 2.0 * double(tile.m * tile.n) * (size.k + depth);
  return std::ceil(tiles / units) * flops / (unitPeak * tile.efficiency);
}

/// The rate of products of that size: the mean of the measured rates'
/// logarithms, by the inverse eighth power of their distance in powers of two.
/// A size beyond those that are measured counts as the nearest of them.
static double measuredRate(const std::vector<MeasuredProduct> &products,
                           const ProductSize &size) {
  std::vector<double> distances(products.size(), 1e-3);
  for (auto dimension : {&ProductSize::batch, &ProductSize::m, &ProductSize::n,
                         &ProductSize::k}) {
    auto logOf = [&](const ProductSize &of) {
      return std::log2(std::max(of.*dimension, 1.0));
    };
    auto [least, most] = std::minmax_element(
        products.begin(), products.end(), [&](const auto &a, const auto &b) {
          return a.size.*dimension < b.size.*dimension;
        });
    double log = std::clamp(logOf(size), logOf(least->size), logOf(most->size));
    for (auto [distance, product] : llvm::zip_equal(distances, products)) {
      double apart = log - logOf(product.size);
      distance += apart * apart;
    }
  }
  double sum = 0, weights = 0;
  for (auto [distance, product] : llvm::zip_equal(distances, products)) {
    double squared = distance * distance, weight = 1 / (squared * squared);
    sum += weight * std::log(product.flopsPerSecond);
    weights += weight;
  }
  return std::exp(sum / weights);
}

/// Seconds of work that takes `seconds` on the cores of a rank and `longer`
/// where they share it: one core alone may be sooner.
static double secondsOnCores(const Machine &machine, double seconds,
                             double longer) {
  return std::min(seconds + longer, seconds * machine.coresOfRank);
}

/// How many times as long a product of so many operations takes on the cores of
/// a rank: between two of the known ones by the logarithm of the operations.
static double slowerShared(const TypeRates &rates, double flops) {
  const auto &known = rates.sharedSlower;
  auto next = llvm::partition_point(
      known, [&](const auto &each) { return each.first < flops; });
  if (known.empty())
    return 1;
  if (next == known.begin())
    return next->second;
  const auto &[fewer, slower] = *std::prev(next);
  if (next == known.end())
    return slower;
  double share = std::log(flops / fewer) / std::log(next->first / fewer);
  return slower + share * (next->second - slower);
}

double Machine::secondsOfProduct(const ProductSize &size, Type elementType,
                                 ProductKind kind) const {
  const TypeRates *rates = ratesOf(*this, nameOf(elementType));
  if (rates && !rates->products.empty()) {
    bool isKnown =
        kind == ProductKind::WeightGradient && !rates->weightGradients.empty();
    const auto &alike = isKnown ? rates->weightGradients : rates->products;
    double seconds = size.flops() / measuredRate(alike, size);
    double longer = seconds * (slowerShared(*rates, size.flops()) - 1);
    return secondsOnCores(*this, seconds, longer);
  }
  double unitPeak = ::peakOf(*this, rates) * productEfficiency / units;
  ProductSize turned = size;
  std::swap(turned.m, turned.n);
  double best = INFINITY;
  for (const ProductTile &tile : tiles)
    for (const ProductSize &way : {size, turned})
      best = std::min(best, secondsInTiles(way, tile, unitPeak, units, depth));
  return best;
}

double Machine::rateOf(WorkForm form, Type elementType) const {
  const TypeRates *rates = ratesOf(*this, nameOf(elementType));
  double peak = ::peakOf(*this, rates);
  auto known = [&](double TypeRates::*ofType, double ofMachine) {
    return rates && rates->*ofType > 0 ? rates->*ofType : ofMachine;
  };
  switch (form) {
  case WorkForm::Rows:
    return known(&TypeRates::rowFlopsPerSecond, rowFlopsPerSecond);
  case WorkForm::Product:
    return peak;
  case WorkForm::Attention:
    return known(&TypeRates::attentionForward, peak * attentionForward);
  case WorkForm::AttentionGradient:
    return known(&TypeRates::attentionBackward, peak * attentionBackward);
  }
  llvm_unreachable("every form is listed");
}

/// Operations of a rounding to bf16 beside the one that it counts as: hosts
/// have no instruction that keeps denormals.
static constexpr double kRoundingOperations = 6;

double mlir::rota::otherOperations(const Cost &cost) {
  return cost.flops - cost.specialFunctions +
         kRoundingOperations * cost.roundings;
}

double Machine::secondsOfRows(const Cost &cost, Type elementType) const {
  double rate = rateOf(WorkForm::Rows, elementType);
  const TypeRates *rates = ratesOf(*this, nameOf(elementType));
  if (!rates || rates->elementsPerSecond == 0)
    return cost.flops / rate;
  double elements =
      cost.bytes() /
      double(llvm::divideCeil(elementType.getIntOrFloatBitWidth(), 8));
  return otherOperations(cost) / rate +
         cost.specialFunctions / rates->specialFunctionsPerSecond +
         elements / rates->elementsPerSecond;
}

double Machine::secondsOfAttention(const Cost &cost, double seenKeys,
                                   Type elementType) const {
  double seconds = cost.flops / rateOf(cost.form, elementType);
  const TypeRates *rates = ratesOf(*this, nameOf(elementType));
  if (!rates || seenKeys == 0)
    return seconds;
  double keys = cost.form == WorkForm::Attention ? rates->attentionForwardKeys
                                                 : rates->attentionBackwardKeys;
  return seconds * (1 + keys / seenKeys);
}

/// Keys that a query of an attention sees, on average; 0 for other ops.
static double seenKeys(Operation *op) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<AttentionOp, AttentionGradOp>([](auto attention) {
        return seenPairs(attention) / double(attention.getMask().sequence);
      })
      .Default(0.0);
}

double Machine::shareOfRanks(int64_t behind, int64_t ranks) const {
  bool isShared = cores > 0 && behind < ranks;
  return isShared ? 1 - double(behind) / double(ranks) : 1;
}

/// The share of ranks for which the op has work.
static double shareOfRanks(const Machine &machine, Operation *op) {
  return llvm::TypeSwitch<Operation *, double>(op)
      .Case<AttentionOp, AttentionGradOp>([&](auto attention) {
        return machine.shareOfRanks(
            attention.getBehind().value_or(0),
            meshOf(attention).getSize(MeshAxis::Context));
      })
      .Default(1.0);
}

double Machine::secondsOfExperts(const ProductSize &size, Type elementType,
                                 ProductKind kind) const {
  const TypeRates *rates = ratesOf(*this, nameOf(elementType));
  return (rates ? rates->groupedSlower : 1) *
         secondsOfProduct(size, elementType, kind);
}

static ProductKind kindOf(Operation *op) {
  bool isGradient = isa<GroupedProductGradOp>(op);
  if (auto einsum = dyn_cast<EinsumOp>(op)) {
    EinsumOp::Letters letters = einsum.getLetters();
    isGradient = letters.result.contains(letters.lhs.take_back());
  }
  return isGradient ? ProductKind::WeightGradient : ProductKind::Usual;
}

/// Seconds of the arithmetic of an op's products.
static double secondsOfProducts(const Machine &machine, Operation *op,
                                const ProductSize &size, Type elementType) {
  return isa<GroupedProductOp, GroupedProductGradOp>(op)
             ? machine.secondsOfExperts(size, elementType, kindOf(op))
             : machine.secondsOfProduct(size, elementType, kindOf(op));
}

double Machine::secondsOfOp(Operation *op) const {
  auto priced = dyn_cast<CostOpInterface>(op);
  if (!priced || isa<ViewOpInterface, CollectiveOpInterface>(op))
    return 0;
  Cost cost = priced.getCost();
  if (cost.bytes() == 0)
    return 0;
  Type type = op->getNumOperands() > 0 ? getElementTypeOrSelf(op->getOperand(0))
                                       : getElementTypeOrSelf(op->getResult(0));
  double memory = secondsOfMemory(op, cost);
  if (cost.form == WorkForm::Product)
    return launch + secondsOfKeeping(op) +
           std::max(memory, secondsOfProducts(*this, op, cost.product, type));
  double work = cost.form == WorkForm::Rows
                    ? secondsOfRows(cost, type)
                    : secondsOfAttention(cost, seenKeys(op), type);
  return secondsOfKernel(std::max(memory, work * ::shareOfRanks(*this, op)));
}

double Machine::secondsOfKernel(double seconds) const {
  return launch + secondsOnCores(*this, seconds, sharedLaunch);
}

const NetworkLevel &Machine::levelOf(const MeshGroup &group) const {
  auto level = llvm::find_if(network, [&](const NetworkLevel &level) {
    return level.devices == 0 || group.span() <= level.devices;
  });
  return level == network.end() ? network.back() : *level;
}

/// Over a level, all ranks that the group has within one device of it, such as
/// a node, send at a time.
double Machine::secondsOfCollective(double bytes,
                                    const MeshGroup &group) const {
  int64_t ranks = group.ranks(), inside = 1; // ranks within the level before
  double latency = 0, rate = INFINITY;
  const NetworkLevel &last = levelOf(group);
  for (const NetworkLevel &level : network) {
    bool isLast = &level == &last;
    int64_t within = isLast ? ranks : group.ranksWithin(level.devices);
    int64_t steps = within / inside - 1;
    if (steps > 0) {
      latency += double(steps) * level.latency;
      rate = std::min(rate, double(inside) * level.reached());
    }
    inside = within;
    if (isLast)
      break;
  }
  return ranks > 1 ? latency + bytes / rate : 0;
}

double Machine::secondsOfMessage(double bytes, const MeshGroup &group) const {
  const NetworkLevel &level = levelOf(group);
  return level.latency + bytes / level.reached();
}

/// How many times as long products take where all cores share them, by their
/// operations: the median of the measured sizes with as many. Small ones are
/// not divided, and larger ones at least as well: more is a busy host's. Some
/// of the cores have the power `sharing` of that factor.
static std::vector<std::pair<double, double>>
slowerByOperations(const TypeRates &rates, double sharing) {
  std::map<double, SmallVector<double>> found;
  for (const MeasuredProduct &shared : rates.sharedProducts)
    found[shared.size.flops()].push_back(
        measuredRate(rates.products, shared.size) / shared.flopsPerSecond);
  std::vector<std::pair<double, double>> slower;
  double least = INFINITY;
  for (auto &[flops, all] : found) {
    llvm::sort(all);
    least = std::min(least, std::max(1.0, all[all.size() / 2]));
    slower.emplace_back(flops, std::pow(least, sharing));
  }
  return slower;
}

Machine Machine::sharedBy(int64_t ranks) const {
  Machine part = *this;
  if (cores == 0)
    return part;
  auto sharers = double(std::clamp<int64_t>(ranks, 1, cores));
  double sharing = cores > 1 ? 1 - std::log(sharers) / std::log(cores) : 0;
  part.sharedLaunch *= sharing;
  part.coresOfRank = double(cores) / sharers;
  // Where there are more ranks than cores, other ranks work meanwhile.
  double divisor = sharers;
  if (ranks <= cores)
    divisor *= std::pow(slowestCore, 1 - sharing);
  part.slowestCore = 1;
  for (auto &[name, rates] : part.types) {
    rates.flopsPerSecond /= sharers;
    rates.rowFlopsPerSecond /= divisor;
    rates.attentionForward /= divisor;
    rates.attentionBackward /= divisor;
    rates.elementsPerSecond /= divisor;
    rates.specialFunctionsPerSecond /= divisor;
    rates.sharedSlower = slowerByOperations(rates, sharing);
    for (auto *products : {&rates.products, &rates.weightGradients})
      for (MeasuredProduct &product : *products)
        product.flopsPerSecond /= divisor;
    rates.sharedProducts.clear();
  }
  part.units = std::max(1.0, units / sharers);
  part.rowFlopsPerSecond /= divisor;
  part.memoryBytesPerSecond /= divisor;
  part.copiedPerSecond /= divisor;
  part.updatedPerSecond /= divisor;
  part.cacheBytes /= sharers;
  part.cacheBytesPerSecond /= divisor;
  return part;
}
