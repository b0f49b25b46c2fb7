// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/search/Search.h"

#include "tools/planner/search/Candidates.h"
#include "tools/planner/search/Variants.h"
#include "tools/planner/search/Work.h"

#include <algorithm>
#include <limits>

namespace rota {
namespace {

/// The plans of a batch. Whichever threads there are, the next batch is chosen
/// with the results of the last one.
constexpr size_t kBatch = 4;
/// The share of the time that is left for the front and for variants.
constexpr double kLeftAfterPlans = 0.1;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool isBefore(const PlannedCandidate &a, const PlannedCandidate &b) {
  return std::pair(a.seconds, a.bytes) < std::pair(b.seconds, b.bytes);
}

class PlanSearch {
public:
  explicit PlanSearch(const SearchRequest &request)
      : request(request), limits(request.limits), work(request),
        memory(double(request.plan.compiler.memory)) {}

  std::optional<SearchAnswer> run(std::string &error) {
    error = checkSearch(request);
    if (!error.empty())
      return std::nullopt;
    auto model = readSearchModel(request.plan, error);
    if (!model)
      return std::nullopt;
    candidates.emplace(request, *model, work);
    candidates->costDivisions();
    candidates->costPolicies();
    endWork("layers");
    answer.counts = candidates->counts();
    answer.leastStep = candidates->leastStep();
    answer.refusal = candidates->refusal();
    if (answer.counts.candidates == 0) {
      error = whyNoCandidate();
      return std::nullopt;
    }
    candidates->simulate();
    endWork("timelines");
    planBest();
    planFront();
    if (!hasFitting())
      planSmallest();
    endWork("plans");
    planVariants();
    endWork("variants");
    finish();
    return std::move(answer);
  }

private:
  std::string whyNoCandidate() const {
    if (work.wasCut())
      return "'search': the time was over before there was a plan";
    return answer.refusal.empty()
               ? "'devices': expected a number of ranks that the batch and the "
                 "layers can be divided over, got " +
                     std::to_string(request.devices)
               : "no division of the model has a plan: " + answer.refusal;
  }

  void endWork(const char *name) {
    double before = 0;
    for (const auto &[other, seconds] : answer.workSeconds)
      before += seconds;
    answer.workSeconds.emplace_back(name, work.seconds() - before);
  }

  bool fits(const PlannedCandidate &plan) const {
    return plan.error.empty() && (memory == 0 || double(plan.bytes) <= memory);
  }
  bool hasFitting() const {
    return std::ranges::any_of(planned,
                               [&](const auto &plan) { return fits(plan); });
  }

  /// The plans that fit, the shortest first, but those with a plainer one.
  std::vector<PlannedCandidate> ranking() const {
    std::vector<PlannedCandidate> ranked;
    for (const PlannedCandidate &plan : planned)
      if (fits(plan) && std::ranges::none_of(planned, [&](const auto &other) {
            return fits(other) && isPlainer(other, plan);
          }))
        ranked.push_back(plan);
    std::ranges::sort(ranked, isBefore);
    return ranked;
  }

  /// Seconds of the last plan of the ranking; infinity while it is not full.
  double lastRanked() const {
    std::vector<PlannedCandidate> ranked = ranking();
    return ranked.size() < kRankedPlans ? kInfinity
                                        : ranked[kRankedPlans - 1].seconds;
  }

  double bestSeconds() const {
    double best = 0;
    for (const PlannedCandidate &plan : planned)
      if (fits(plan) && (best == 0 || plan.seconds < best))
        best = plan.seconds;
    return best;
  }

  /// Plans these candidates whole.
  void plan(const std::vector<const CandidateItem *> &batch, size_t all) {
    std::vector<PlannedCandidate> results(batch.size());
    work.run(batch.size(), [&](size_t i) {
      results[i] = evaluate(request.plan, batch[i]->candidate);
      results[i].leastSeconds = batch[i]->assessment.leastSeconds;
      results[i].leastBytes = batch[i]->assessment.leastBytes;
    });
    for (size_t i = 0; i < batch.size(); ++i) {
      if (results[i].candidate.schedule.empty())
        continue; // the time was over
      candidates->learn(*batch[i], results[i]);
      add(std::move(results[i]));
    }
    work.report({"plans", planned.size(), all, bestSeconds()});
  }

  void add(PlannedCandidate plan) {
    if (!plan.error.empty() && answer.refusal.empty())
      answer.refusal = plan.error;
    // A variant may be a candidate that has been planned.
    std::string flags = flagsOf(plan.candidate);
    if (std::ranges::none_of(planned, [&](const PlannedCandidate &other) {
          return flagsOf(other.candidate) == flags;
        }))
      planned.push_back(std::move(plan));
  }

  void planBest() {
    auto most = size_t(limits.plans);
    size_t refused = 0;
    while (planned.size() < most + std::min(refused, most) &&
           work.hasLeft(kLeftAfterPlans)) {
      auto batch = candidates->next(kBatch, lastRanked());
      // The likely ones may all have been refused by the compiler.
      bool isOpen = batch.empty() && lastRanked() == kInfinity;
      if (batch.empty() && !(isOpen && candidates->simulate()))
        break;
      plan(batch, most);
      refused = size_t(std::ranges::count_if(
          planned, [](const auto &plan) { return !plan.error.empty(); }));
    }
  }

  void planVariants() {
    std::vector<PlannedCandidate> best = ranking();
    best.resize(std::min(best.size(), size_t(limits.refined)));
    for (PlannedCandidate &variant : planVariantsOf(request, best, work))
      add(std::move(variant));
  }

  /// Plans what is shortest, by its estimate, in parts of the memory.
  void planFront() {
    std::vector<const CandidateItem *> batch;
    double most = memory;
    for (const PlannedCandidate &plan : planned)
      if (memory == 0)
        most = std::max(most, double(plan.bytes));
    for (int part = limits.frontPlans; part > 0; --part)
      if (const CandidateItem *item =
              candidates->shortestIn(most * part / (limits.frontPlans + 1)))
        batch.push_back(item);
    plan(batch, planned.size() + batch.size());
  }

  /// Plans the candidates with the least bounds of memory.
  void planSmallest() {
    auto batch = candidates->smallest(2 * kBatch);
    plan(batch, planned.size() + batch.size());
  }

  void finish() {
    SearchCounts &counts = answer.counts;
    counts.planned = planned.size();
    for (PlannedCandidate &plan : planned) {
      counts.unplannable += !plan.error.empty();
      counts.overMemory += plan.error.empty() && !fits(plan);
      if (plan.error.empty() && !fits(plan) &&
          (!answer.nearest || plan.bytes < answer.nearest->bytes))
        answer.nearest = plan;
    }
    answer.best = ranking();
    candidates->countLeftOut(lastRanked(), counts);
    for (const PlannedCandidate &plan : answer.best)
      if (answer.front.empty() || plan.bytes < answer.front.back().bytes)
        answer.front.push_back(plan);
    answer.best.resize(std::min(answer.best.size(), kRankedPlans));
    if (!answer.best.empty())
      answer.nearest.reset();
    for (std::vector<PlannedCandidate> *list : {&answer.best, &answer.front})
      for (PlannedCandidate &plan : *list)
        countParts(plan, candidates->operationsOf(plan.candidate),
                   candidates->peak());
    answer.isCut = work.wasCut();
    answer.seconds = work.seconds();
  }

  const SearchRequest &request;
  const SearchLimits &limits;
  SearchWork work;
  double memory;
  std::optional<Candidates> candidates;
  std::vector<PlannedCandidate> planned;
  SearchAnswer answer;
};

} // namespace

std::optional<SearchAnswer> searchPlan(const SearchRequest &request,
                                       std::string &error) {
  return PlanSearch(request).run(error);
}

} // namespace rota
