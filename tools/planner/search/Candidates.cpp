// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/search/Candidates.h"

#include "passes/differentiate/Remat.h"

#include <algorithm>
#include <limits>
#include <set>

namespace rota {
namespace {

constexpr const char *kNoRemat = "none", *kFullRemat = "full";
constexpr size_t kSimulations = 64;   // of a batch
constexpr size_t kLeastDivisions = 8; // that get a policy besides none
constexpr size_t kSplitCosts = 12;    // pairs of a division and a policy
/// Shares of the time that are left for what follows: on a slow machine each
/// part is cut rather than the last ones left out.
constexpr double kLeftAfterDivisions = 0.7, kLeftAfterFull = 0.55,
                 kLeftAfterPolicies = 0.45, kLeftAfterSplits = 0.4,
                 kLeftAfterTimelines = 0.3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

} // namespace

Candidates::Candidates(const SearchRequest &request, const SearchModel &model,
                       SearchWork &work)
    : request(request), model(model), work(work),
      conditions(conditionsFor(request.plan, request.devices)),
      layerRequest(request.plan), memory(double(request.plan.compiler.memory)),
      divisions(searchedDivisions(request, model)) {
  if (request.plan.compiler.machine)
    layerRequest.compiler.machine = conditions.machine;
  size_t most = request.limits.divisions;
  if (divisions.size() > most) {
    unlikelyDivisions = divisions.size() - most;
    divisions.resize(most);
  }
}

const LayerCosts *Candidates::find(const CostKey &key) const {
  auto found = costs.find(key);
  return found == costs.end() ? nullptr : found->second.get();
}

void Candidates::cost(const std::vector<CostKey> &keys, double left) {
  std::vector<CostKey> missing;
  for (const CostKey &key : keys)
    if (!find(key))
      missing.push_back(key);
  std::vector<std::unique_ptr<LayerCosts>> results(missing.size());
  // In parts, for progress.
  constexpr size_t part = 8;
  for (size_t begin = 0; begin < missing.size() && work.hasLeft(left);
       begin += part) {
    size_t count = std::min(part, missing.size() - begin);
    work.run(count, [&](size_t i) {
      const CostKey &key = missing[begin + i];
      PlanCandidate like;
      like.layer = key.division;
      like.remat = key.remat;
      like.splitBackward = key.splitBackward;
      like.exchange = searchedExchange(request);
      results[begin + i] =
          std::make_unique<LayerCosts>(layerCosts(layerRequest, model, like));
    });
    work.report({"layers", begin + count, missing.size()});
  }
  for (size_t i = 0; i < missing.size(); ++i) {
    if (!results[i])
      continue; // the time was over
    if (!results[i]->error.empty() && firstRefusal.empty())
      firstRefusal = results[i]->error;
    costs[missing[i]] = std::move(results[i]);
  }
}

double Candidates::leastStepOf(const CostKey &key) const {
  const LayerCosts *found = find(key);
  if (!found || !found->error.empty())
    return 0;
  const LayerDivision &division = key.division;
  double passes =
      double(request.batchSize) / double(division.sequences * division.expert);
  return found->all().seconds() * passes * double(division.ranks()) /
         double(request.devices);
}

void Candidates::addCandidates(const std::vector<CostKey> &keys) {
  std::vector<std::vector<CandidateItem>> found(keys.size());
  work.run(keys.size(), [&](size_t i) {
    const LayerCosts *layers = find(keys[i]);
    if (!layers || !layers->error.empty())
      return;
    forEachCandidate(
        request, model, keys[i].division, [&](const PlanCandidate &candidate) {
          CandidateItem &item = found[i].emplace_back();
          item.candidate = candidate;
          item.candidate.remat = keys[i].remat;
          item.costs = layers;
          item.assessment = assess(item.candidate, *layers, conditions);
        });
  });
  for (std::vector<CandidateItem> &list : found)
    std::ranges::move(list, std::back_inserter(items));
}

void Candidates::costDivisions() {
  std::string first = request.fixed.remat.value_or(kNoRemat);
  std::vector<CostKey> keys;
  for (const LayerDivision &division : divisions)
    keys.push_back({division, first});
  cost(keys, kLeftAfterDivisions);
  std::vector<std::pair<double, LayerDivision>> steps;
  for (const CostKey &key : keys)
    if (double step = leastStepOf(key); step > 0)
      steps.emplace_back(step, key.division);
  std::ranges::sort(steps);
  if (!steps.empty())
    least = steps.front().first;
  if (!request.fixed.remat) {
    // Divisions with much more work are not worth another policy.
    size_t count =
        std::min(steps.size(), std::max(steps.size() / 2, kLeastDivisions));
    std::vector<CostKey> full;
    for (size_t i = 0; i < count; ++i)
      full.push_back({steps[i].second, kFullRemat});
    cost(full, kLeftAfterFull);
    keys.insert(keys.end(), full.begin(), full.end());
  }
  addCandidates(keys);
}

std::vector<LayerDivision> Candidates::likelyDivisions() const {
  // The time without recomputation, where the memory of all of it fits.
  std::map<LayerDivision, double> best;
  for (const CandidateItem &item : items) {
    const PlanCandidate &candidate = item.candidate;
    if (candidate.remat != kFullRemat || isBeyondMemory(item))
      continue;
    const LayerCosts *without = find({candidate.layer, kNoRemat});
    if (!without || !without->error.empty())
      continue;
    double share = without->all().seconds() / item.costs->all().seconds();
    double seconds = item.assessment.seconds * share;
    auto [entry, isNew] = best.try_emplace(candidate.layer, seconds);
    entry->second = std::min(entry->second, seconds);
  }
  std::vector<LayerDivision> sorted;
  for (const LayerDivision &division : divisions)
    if (best.contains(division))
      sorted.push_back(division);
  std::ranges::sort(sorted, {}, [&](const LayerDivision &division) {
    return std::pair(best[division], division);
  });
  return sorted;
}

void Candidates::costPolicies() {
  if (request.fixed.remat)
    return;
  std::vector<CostKey> keys;
  for (const LayerDivision &division : likelyDivisions())
    for (llvm::StringRef policy : mlir::rota::policyNames())
      if (policy != kNoRemat && policy != kFullRemat &&
          keys.size() < size_t(request.limits.policies))
        keys.push_back({division, policy.str()});
  cost(keys, kLeftAfterPolicies);
  addCandidates(keys);
}

static std::vector<bool> axesOf(const PlanCandidate &candidate) {
  const LayerDivision &layer = candidate.layer;
  return {candidate.data > 1, candidate.stages > 1, candidate.fsdp > 1,
          layer.expert > 1,   layer.context > 1,    layer.sequence > 1,
          layer.tensor > 1};
}

bool Candidates::isRefused(const CandidateItem &item) const {
  auto found = tries.find(axesOf(item.candidate));
  return found != tries.end() && found->second.areRefused();
}

Candidates::Correction
Candidates::correctionOf(const CandidateItem &item) const {
  auto found = corrections.find(
      {item.costs, item.candidate.schedule, item.candidate.gathers});
  return found == corrections.end() ? Correction() : found->second;
}

double Candidates::rankOf(const CandidateItem &item) const {
  Correction correction = correctionOf(item);
  double seconds = item.assessment.seconds * correction.seconds;
  double excess =
      memory > 0 ? item.assessment.bytes * correction.bytes / memory : 0;
  return excess > 1 ? seconds * (1 + excess) : seconds;
}

void Candidates::sortByRank(size_t begin) {
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = begin; i < items.size(); ++i)
    order.emplace_back(isBeyondMemory(items[i]) ? kInfinity : rankOf(items[i]),
                       i);
  std::ranges::sort(order);
  std::vector<CandidateItem> sorted;
  sorted.reserve(order.size());
  for (auto [rank, i] : order)
    sorted.push_back(std::move(items[i]));
  std::ranges::move(sorted, items.begin() + std::ptrdiff_t(begin));
}

/// Costs split backwards of those that are likely to be best.
void Candidates::costSplits() {
  std::vector<CostKey> keys;
  std::set<CostKey> known;
  for (const CandidateItem &item : items) {
    if (keys.size() == kSplitCosts || isBeyondMemory(item))
      break;
    CostKey key{item.candidate.layer, item.candidate.remat, true};
    if (item.candidate.splitBackward && known.insert(key).second)
      keys.push_back(key);
  }
  cost(keys, kLeftAfterSplits);
  for (CandidateItem &item : items) {
    if (!item.candidate.splitBackward)
      continue;
    const LayerCosts *split =
        find({item.candidate.layer, item.candidate.remat, true});
    if (split && split->error.empty()) {
      item.costs = split;
      item.assessment = assess(item.candidate, *split, conditions);
    }
  }
}

bool Candidates::simulate() {
  if (simulated == 0) {
    sortByRank(0);
    costSplits();
    sortByRank(0);
  }
  size_t before = simulated;
  size_t most =
      std::min(items.size(), simulated + size_t(request.limits.simulations));
  while (simulated < most && work.hasLeft(kLeftAfterTimelines)) {
    size_t count = std::min(kSimulations, most - simulated);
    if (isBeyondMemory(items[simulated]))
      break;
    work.run(count, [&](size_t i) {
      CandidateItem &item = items[simulated + i];
      if (isRefused(item))
        return;
      auto better = simulateCandidate(item.candidate, *item.costs, conditions);
      item.exists = better.has_value();
      if (better)
        item.assessment = *better;
    });
    simulated += count;
    work.report({"timelines", simulated, most});
  }
  return simulated > before;
}

std::vector<const CandidateItem *> Candidates::next(size_t count,
                                                    double seconds) {
  std::vector<std::pair<double, size_t>> open;
  for (size_t i = 0; i < items.size(); ++i) {
    const CandidateItem &item = items[i];
    if (!item.isTaken && item.exists && !isRefused(item) && i < simulated &&
        !isBeyondMemory(item) && item.assessment.leastSeconds <= seconds)
      open.emplace_back(rankOf(item), i);
  }
  size_t found = std::min(count, open.size());
  std::ranges::partial_sort(open, open.begin() + std::ptrdiff_t(found));
  std::vector<const CandidateItem *> batch;
  for (size_t i = 0; i < found; ++i) {
    items[open[i].second].isTaken = true;
    batch.push_back(&items[open[i].second]);
  }
  return batch;
}

const CandidateItem *Candidates::shortestIn(double bytes) {
  CandidateItem *best = nullptr;
  double least = kInfinity;
  for (CandidateItem &item : items) {
    Correction correction = correctionOf(item);
    if (!item.exists || isRefused(item) ||
        item.assessment.bytes * correction.bytes > bytes ||
        item.assessment.seconds * correction.seconds >= least)
      continue;
    best = &item;
    least = item.assessment.seconds * correction.seconds;
  }
  if (!best || best->isTaken)
    return nullptr;
  best->isTaken = true;
  return best;
}

std::vector<const CandidateItem *> Candidates::smallest(size_t count) {
  std::vector<CandidateItem *> open;
  for (CandidateItem &item : items)
    if (!item.isTaken && item.exists && !isRefused(item))
      open.push_back(&item);
  size_t found = std::min(count, open.size());
  std::ranges::partial_sort(
      open, open.begin() + std::ptrdiff_t(found), {},
      [](const CandidateItem *item) { return item->assessment.leastBytes; });
  open.resize(found);
  for (CandidateItem *item : open)
    item->isTaken = true;
  return {open.begin(), open.end()};
}

void Candidates::learn(const CandidateItem &item,
                       const PlannedCandidate &plan) {
  Tries &ofAxes = tries[axesOf(item.candidate)];
  ++(plan.error.empty() ? ofAxes.made : ofAxes.refused);
  if (!plan.error.empty() || item.assessment.seconds <= 0)
    return;
  Correction &correction = corrections[{item.costs, item.candidate.schedule,
                                        item.candidate.gathers}];
  correction.seconds = plan.seconds / item.assessment.seconds;
  correction.bytes = double(plan.bytes) / item.assessment.bytes;
}

double Candidates::operationsOf(const PlanCandidate &candidate) {
  CostKey key{candidate.layer, kNoRemat};
  if (!find(key))
    cost({key}, 0);
  const LayerCosts *found = find(key);
  return found ? found->operations * double(candidate.microbatches) *
                     double(candidate.accumulate) / double(candidate.stages)
               : 0;
}

double Candidates::peak() const {
  for (const auto &[key, found] : costs)
    if (found->error.empty())
      return conditions.machine.peakOf(
          found->type == ElementType::BF16 ? "bf16" : "f32");
  return conditions.machine.rowFlopsPerSecond;
}

SearchCounts Candidates::counts() const {
  SearchCounts counts;
  counts.candidates = items.size();
  counts.divisions = divisions.size();
  counts.unlikelyDivisions = unlikelyDivisions;
  return counts;
}

void Candidates::countLeftOut(double seconds, SearchCounts &counts) const {
  for (const CandidateItem &item : items) {
    if (item.isTaken)
      continue;
    if (!item.exists || isRefused(item))
      ++counts.unplannable;
    else if (isBeyondMemory(item))
      ++counts.beyondMemory;
    else if (item.assessment.leastSeconds > seconds)
      ++counts.slower;
    else
      ++counts.unlikely;
  }
}

} // namespace rota
