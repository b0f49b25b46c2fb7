// SPDX-License-Identifier: Apache-2.0
//
// A search on each stage for what fits, then one over the stages for the step.
#include "tools/planner/SearchRemat.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace rota {
namespace {

/// Policies of the chunks of one stage, in the order of the chunks.
using StagePolicies = std::vector<int>;

/// Whether policy `a` of a chunk makes policy `b` needless.
bool beats(const MixedPlans &plans, int chunk, int a, int b) {
  const ChunkCost &first = plans.costOf(chunk, a);
  const ChunkCost &second = plans.costOf(chunk, b);
  bool isAsGood = first.isAsFast(second) && first.isAsSmall(second);
  bool areEqual = second.isAsFast(first) && second.isAsSmall(first);
  return isAsGood && (!areEqual || a < b);
}

/// The policies of a chunk that no other one beats, those with the least time
/// first.
std::vector<int> worthwhile(const MixedPlans &plans, int chunk) {
  std::vector<int> list;
  for (int policy = 0; policy < plans.policies(); ++policy) {
    bool isBeaten = false;
    for (int other = 0; other < plans.policies(); ++other)
      isBeaten |= beats(plans, chunk, other, policy);
    if (!isBeaten)
      list.push_back(policy);
  }
  auto keyOf = [&](int policy) {
    return std::pair(plans.costOf(chunk, policy).seconds(), policy);
  };
  std::sort(list.begin(), list.end(),
            [&](int a, int b) { return keyOf(a) < keyOf(b); });
  return list;
}

/// A stage: its chunks, and for each the policies that are worth a try.
class StageChoices {
public:
  StageChoices(const MixedPlans &plans, int stage) : plans(plans) {
    const pipe::Shape &shape = plans.shape();
    for (int row = 0; row < shape.repeats; ++row) {
      chunks.push_back(shape.chunkOf(stage, row));
      lists.push_back(worthwhile(plans, chunks.back()));
    }
  }

  const ChunkCost &costOf(size_t i, int policy) const {
    return plans.costOf(chunks[i], policy);
  }
  double secondsOf(const StagePolicies &policies) const {
    double seconds = 0;
    for (size_t i = 0; i < chunks.size(); ++i)
      seconds += costOf(i, policies[i]).seconds();
    return seconds;
  }
  bool isAsFast(const StagePolicies &a, const StagePolicies &b) const {
    for (size_t i = 0; i < chunks.size(); ++i)
      if (!costOf(i, a[i]).isAsFast(costOf(i, b[i])))
        return false;
    return true;
  }
  bool isAsSmall(const StagePolicies &a, const StagePolicies &b) const {
    for (size_t i = 0; i < chunks.size(); ++i)
      if (!costOf(i, a[i]).isAsSmall(costOf(i, b[i])))
        return false;
    return true;
  }
  bool offloads(const StagePolicies &policies) const {
    for (size_t i = 0; i < chunks.size(); ++i)
      if (costOf(i, policies[i]).offloaded > 0)
        return true;
    return false;
  }
  void set(const StagePolicies &policies, std::vector<int> &all) const {
    for (size_t i = 0; i < chunks.size(); ++i)
      all[chunks[i]] = policies[i];
  }
  /// All combinations, those with the least time first; empty where there are
  /// more than `most`.
  std::vector<StagePolicies> combinations(size_t most) const {
    std::vector<StagePolicies> found = {{}};
    for (const std::vector<int> &list : lists) {
      if (found.size() * list.size() > most)
        return {};
      std::vector<StagePolicies> longer;
      for (const StagePolicies &begin : found)
        for (int policy : list) {
          longer.push_back(begin);
          longer.back().push_back(policy);
        }
      found = std::move(longer);
    }
    sort(found);
    return found;
  }
  /// One policy for all chunks, of those that are worth a try for one of them,
  /// those with the least time first.
  std::vector<StagePolicies> uniform() const {
    std::vector<StagePolicies> found;
    for (int policy = 0; policy < plans.policies(); ++policy)
      if (std::any_of(lists.begin(), lists.end(), [&](const auto &list) {
            return std::find(list.begin(), list.end(), policy) != list.end();
          }))
        found.emplace_back(chunks.size(), policy);
    sort(found);
    return found;
  }
  void sort(std::vector<StagePolicies> &list) const {
    std::sort(list.begin(), list.end(),
              [&](const StagePolicies &a, const StagePolicies &b) {
                return std::pair(secondsOf(a), a) < std::pair(secondsOf(b), b);
              });
  }

  const MixedPlans &plans;
  std::vector<int> chunks;
  std::vector<std::vector<int>> lists;
};

/// One policy for all chunks of a stage, then faster ones for one chunk after
/// the other.
class Climb {
public:
  Climb(const StageChoices &stage, StagePolicies start, bool mayOffload)
      : stage(stage), at(std::move(start)), mayOffload(mayOffload) {}

  /// The policies to be tried next; nothing at the end.
  std::optional<StagePolicies> next() {
    tried.reset();
    if (isOver)
      return std::nullopt;
    if (!hasStarted)
      return at;
    double best = 0;
    for (size_t i = 0; i < stage.chunks.size(); ++i)
      for (int policy : stage.lists[i])
        if (double value = valueOf(i, policy); value > best) {
          best = value;
          tried = {i, policy};
        }
    if (!tried)
      return std::nullopt;
    StagePolicies policies = at;
    policies[tried->first] = tried->second;
    return policies;
  }
  /// Whether these fit.
  void tell(bool fits) {
    if (!hasStarted && !fits)
      isOver = true;
    else if (!hasStarted)
      hasStarted = true;
    else if (fits)
      at[tried->first] = tried->second;
    else
      refused.insert(*tried);
  }

private:
  /// Seconds saved for each byte; 0 or less: not to be tried.
  double valueOf(size_t i, int policy) const {
    const ChunkCost &now = stage.costOf(i, at[i]);
    const ChunkCost &then = stage.costOf(i, policy);
    double saved = now.seconds() - then.seconds();
    if (saved <= 0 || refused.contains({i, policy}) ||
        (then.offloaded > 0 && !mayOffload))
      return 0;
    int64_t more = (then.stash - then.offloaded) - (now.stash - now.offloaded);
    if (more <= 0)
      return std::numeric_limits<double>::infinity();
    return saved / (double(more) * stage.plans.live()[stage.chunks[i]]);
  }

  const StageChoices &stage;
  StagePolicies at; // which fit, once it has started
  bool mayOffload;
  bool hasStarted = false, isOver = false;
  std::optional<std::pair<size_t, int>> tried;
  std::set<std::pair<size_t, int>> refused;
};

/// The tries on one stage, and which of them fit.
class StageSearch {
public:
  StageSearch(const MixedPlans &plans, int stage)
      : choices(plans, stage),
        combinations(choices.combinations(size_t(kMostCombinations))) {
    if (!combinations.empty())
      return;
    std::vector<StagePolicies> starts = choices.uniform();
    bool mayOffload = std::any_of(
        starts.begin(), starts.end(),
        [&](const StagePolicies &start) { return choices.offloads(start); });
    for (const StagePolicies &start : starts) {
      if (mayOffload)
        climbs.emplace_back(choices, start, /*mayOffload=*/true);
      if (!choices.offloads(start))
        climbs.emplace_back(choices, start, /*mayOffload=*/false);
    }
  }
  StageSearch(const StageSearch &) = delete;

  /// The policies to be planned next; null at the end.
  const StagePolicies *next() {
    return climbs.empty() ? nextCombination() : nextStep();
  }
  void tell(bool fits) {
    if (!climbs.empty())
      climbs[climb].tell(fits);
    (fits ? fitting : refused).push_back(current);
  }

  /// The policies that fit and that no other beats in the times of each chunk,
  /// the least time first.
  std::vector<StagePolicies> best() const {
    std::vector<StagePolicies> kept;
    for (size_t i = 0; i < fitting.size(); ++i)
      if (std::none_of(fitting.begin() + i + 1, fitting.end(),
                       [&](const StagePolicies &other) {
                         return choices.isAsFast(other, fitting[i]);
                       }))
        kept.push_back(fitting[i]);
    choices.sort(kept);
    return kept;
  }

  const StageChoices choices;

private:
  const StagePolicies *nextCombination() {
    while (position < combinations.size()) {
      current = combinations[position++];
      if (std::none_of(fitting.begin(), fitting.end(),
                       [&](const StagePolicies &other) {
                         return choices.isAsFast(other, current);
                       }))
        return &current;
    }
    return nullptr;
  }
  const StagePolicies *nextStep() {
    for (; climb < climbs.size(); ++climb)
      while (auto step = climbs[climb].next()) {
        bool isKnown =
            std::find(fitting.begin(), fitting.end(), *step) != fitting.end();
        if (!isKnown && !isTooLarge(*step)) {
          current = std::move(*step);
          return &current;
        }
        climbs[climb].tell(isKnown);
      }
    return nullptr;
  }
  /// Whether policies that need nothing more did not fit.
  bool isTooLarge(const StagePolicies &policies) const {
    return std::any_of(refused.begin(), refused.end(),
                       [&](const StagePolicies &other) {
                         return choices.isAsSmall(other, policies);
                       });
  }

  std::vector<StagePolicies> combinations; // empty: too many
  std::vector<Climb> climbs;               // then
  std::vector<StagePolicies> fitting, refused;
  size_t position = 0, climb = 0;
  StagePolicies current;
};

/// Policies of all chunks and what they cost.
struct RematCandidate {
  std::vector<int> chosen;
  double step = std::numeric_limits<double>::infinity();
  double seconds = 0; // all computation

  bool operator<(const RematCandidate &other) const {
    return std::tie(step, seconds) < std::tie(other.step, other.seconds);
  }
};

/// The choice of each stage with which the step is shortest.
class StepSearch {
public:
  /// `begin` has the policy of unpipelined layers.
  StepSearch(const MixedPlans &plans, const std::deque<StageSearch> &searches,
             const std::vector<int> &begin)
      : plans(plans), searches(searches) {
    std::vector<int> first = begin;
    for (const StageSearch &search : searches) {
      lists.push_back(search.best());
      search.choices.set(lists.back().front(), first);
    }
    best = candidateOf(first);
  }

  RematCandidate run() {
    size_t combinations = 1;
    for (const auto &list : lists)
      combinations =
          std::min(combinations * list.size(), size_t(kMostChunkSteps) + 1);
    if (combinations <= size_t(kMostChunkSteps))
      tryAll(0, best.chosen);
    else
      descend();
    return best;
  }

private:
  RematCandidate candidateOf(const std::vector<int> &policies) const {
    RematCandidate candidate = {policies, plans.step(policies), 0};
    for (size_t chunk = 0; chunk < policies.size(); ++chunk)
      candidate.seconds += plans.costOf(int(chunk), policies[chunk]).seconds();
    return candidate;
  }
  bool take(const std::vector<int> &policies) {
    RematCandidate candidate = candidateOf(policies);
    bool isBetter = candidate < best;
    if (isBetter)
      best = std::move(candidate);
    return isBetter;
  }

  void tryAll(size_t stage, std::vector<int> policies) {
    if (stage == lists.size()) {
      take(policies);
      return;
    }
    for (const StagePolicies &choice : lists[stage]) {
      searches[stage].choices.set(choice, policies);
      tryAll(stage + 1, policies);
    }
  }

  /// Stage by stage, until no change of one stage is better.
  void descend() {
    int steps = 0;
    for (bool changes = true; changes;) {
      changes = false;
      for (size_t stage = 0; stage < lists.size(); ++stage)
        for (const StagePolicies &choice : lists[stage]) {
          std::vector<int> policies = best.chosen;
          searches[stage].choices.set(choice, policies);
          if (policies == best.chosen)
            continue;
          if (++steps > kMostChunkSteps)
            return;
          changes |= take(policies);
        }
    }
  }

  const MixedPlans &plans;
  const std::deque<StageSearch> &searches;
  RematCandidate best;
  std::vector<std::vector<StagePolicies>> lists;
};

class RematSearch {
public:
  RematSearch(MixedPlans &plans, int64_t memory)
      : plans(plans), memory(memory) {}

  /// The best policies of the pipeline's chunks; unpipelined layers have that
  /// of `begin`. Without policies where nothing fits.
  RematCandidate searchWith(const std::vector<int> &begin) {
    std::deque<StageSearch> searches;
    for (int stage = 0; stage < plans.shape().stages; ++stage)
      searches.emplace_back(plans, stage);
    while (plansLeft > 0 && tryNext(searches, begin))
      --plansLeft;
    for (const StageSearch &search : searches)
      if (search.best().empty())
        return {};
    RematCandidate found = StepSearch(plans, searches, begin).run();
    std::vector<int64_t> bytes = plans.bytes(found.chosen);
    bool fits = !bytes.empty() &&
                *std::max_element(bytes.begin(), bytes.end()) <= memory;
    return fits ? found : RematCandidate();
  }

private:
  /// Plans the next policies of each stage; false where none has any.
  bool tryNext(std::deque<StageSearch> &searches,
               const std::vector<int> &begin) {
    std::vector<int> tried = begin;
    std::vector<size_t> stages;
    for (size_t stage = 0; stage < searches.size(); ++stage)
      if (const StagePolicies *policies = searches[stage].next()) {
        searches[stage].choices.set(*policies, tried);
        stages.push_back(stage);
      }
    if (stages.empty())
      return false;
    std::vector<int64_t> bytes = plans.bytes(tried);
    for (size_t stage : stages)
      searches[stage].tell(!bytes.empty() && bytes[stage] <= memory);
    return true;
  }

  MixedPlans &plans;
  int64_t memory;
  int plansLeft = kMostChunkPlans;
};

} // namespace

std::vector<int> searchRemat(MixedPlans &plans, int64_t memory) {
  RematSearch search(plans, memory);
  std::vector<int> begin(plans.shape().chunks());
  if (!plans.shape().hasUnpipelined)
    return search.searchWith(begin).chosen;
  RematCandidate best;
  for (int policy : worthwhile(plans, plans.shape().chunks() - 1)) {
    begin.back() = policy;
    best = std::min(best, search.searchWith(begin));
  }
  return best.chosen;
}

} // namespace rota
