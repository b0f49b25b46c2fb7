// SPDX-License-Identifier: Apache-2.0
//
// The parts of the search in order: named schedules, priority rules, and moves
// of single actions.
#include "passes/pipeline/search/Search.h"

#include "passes/pipeline/drawing/Table.h"
#include "passes/pipeline/search/Judge.h"
#include "passes/pipeline/search/LocalSearch.h"
#include "passes/pipeline/search/LowerBound.h"
#include "passes/pipeline/search/Rules.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"

#include <algorithm>
#include <deque>

namespace rota::pipe {
namespace {

/// An order that a rule has made.
struct Found : Score {
  PriorityRule rule;
  Order order;
};

/// The search with one placement.
class PlacementSearch {
public:
  PlacementSearch(const ScheduleRequest &request, Placement placement)
      : request(requestWith(request, placement)),
        problem(shapeOf(this->request), request.costs, request.splitBackward,
                request.activations
                    ? request.activations - request.shape.hasUnpipelined
                    : 0),
        judge(this->request), bound(lowerBound()), orderRun(problem) {}
  PlacementSearch(const PlacementSearch &) =
      delete; // members refer to each other

  /// Takes the named schedules that fit the request.
  void tryNamed() {
    for (const Schedule &schedule : allSchedules()) {
      if (schedule.isSearch)
        continue;
      tryNamed(schedule, /*pairs=*/false);
      if (request.pairs && schedule.hasPairs)
        tryNamed(schedule, /*pairs=*/true);
    }
  }

  void tryFixedRules(Budget &budget) {
    for (const PriorityRule &rule : fixedRules(problem))
      if (rules == 0 || budget.left > 0)
        tryRule(rule, budget);
    takeBest();
  }

  /// Tries random rules, and changes of the best ones.
  void tryRules(Budget budget) {
    while (budget.left > 0 && !isDone()) {
      bool fresh = random() % 4 == 0;
      tryRule(fresh ? randomRule(problem, random)
                    : changedRule(problem, pool[random() % pool.size()].rule,
                                  random),
              budget);
    }
    takeBest();
  }

  /// Looks for orders that hold less and are not longer, with the fixed rules
  /// under smaller bounds.
  void reduceActivations(Budget budget) {
    int low = problem.shape.repeats, high = best.activations - 1;
    while (low <= high && budget.left > 0) {
      int middle = low + (high - low) / 2;
      if (fitsInto(middle, budget))
        high = std::min(middle, best.activations) - 1;
      else
        low = middle + 1;
    }
  }

  /// Moves single actions of the best orders.
  void improve(Budget budget) {
    std::vector<Order> starts;
    if (!request.shape.hasUnpipelined && !bestNamed.timeline.ranks.empty()) {
      Timeline apart = bestNamed.timeline;
      dropPairs(apart);
      if (std::optional<Order> order = orderOf(problem, apart))
        starts.push_back(std::move(*order));
    }
    for (const Found &found : pool)
      starts.push_back(found.order);
    int64_t share = budget.left / int64_t(starts.size());
    for (Order &start : starts) {
      Budget part{share};
      if (isDone() || budget.left <= 0)
        break;
      budget.spend(share);
      take(improveOrder(problem, std::move(start), bound,
                        share / problem.actions(), random, part));
    }
  }

  /// True when no timeline with this placement can be shorter.
  bool isDone() const { return !isLess(bound, best.makespan); }

  double makespan() const { return best.makespan; }

  /// Adds what this search has found to the report of others.
  void addTo(SearchReport &report, Candidate &overall) const {
    report.rules += rules;
    report.lowerBound = std::min(report.lowerBound, bound);
    if (isLess(bestNamed.makespan, report.namedMakespan)) {
      report.named = named;
      report.namedMakespan = bestNamed.makespan;
    }
    if (best < overall)
      overall = best;
  }

private:
  static ScheduleRequest requestWith(ScheduleRequest request,
                                     Placement placement) {
    request.shape.placement = placement;
    request.anyPlacement = false;
    return request;
  }

  static Shape shapeOf(const ScheduleRequest &request) {
    Shape shape = request.shape;
    shape.hasUnpipelined = false;
    return shape;
  }

  static constexpr size_t kPool = 6;
  /// Runs of an order that stand for the judgement of one, which takes longer.
  static constexpr int64_t kJudgedAs = 4;

  ScheduleRequest request;
  Problem problem; // without the unpipelined chunk
  Judge judge;
  double bound; // lower, of the makespan
  Candidate best, bestNamed;
  std::string named; // the schedule that made bestNamed
  int rules = 0;     // rules tried
  OrderRun orderRun;
  std::vector<Found> pool; // best first
  std::mt19937 random;     // its default seed is fixed

  double lowerBound() const {
    Problem shorter = problem;
    for (int lane = 0; lane < problem.path(); ++lane)
      shorter.cost[lane] *= judge.leastShare();
    return lowerBoundOf(shorter);
  }

  void tryNamed(const Schedule &schedule, bool pairs) {
    ScheduleRequest own = request;
    own.pairs = pairs;
    std::string error;
    std::optional<Timeline> timeline = makeTimeline(schedule.name, own, error);
    if (!timeline ||
        hasAny(*timeline, ActionKind::BackwardInput) != request.splitBackward)
      return;
    Candidate candidate = judge.judge(*timeline);
    if (candidate < bestNamed) {
      bestNamed = candidate;
      named = schedule.name;
    }
    if (!pairs)
      judge.addPairs(candidate);
    if (candidate < best)
      best = std::move(candidate);
  }

  /// Takes the order's timeline if it is better than the best, and returns what
  /// it is judged by.
  Score take(const Order &order) {
    Timeline timeline = timelineOf(problem, order);
    if (request.shape.hasUnpipelined) {
      timeline.shape.hasUnpipelined = true;
      timeline = *addUnpipelinedLayers(timeline);
    }
    Candidate candidate = judge.judge(std::move(timeline));
    judge.addPairs(candidate);
    Score score = candidate;
    if (candidate < best)
      best = std::move(candidate);
    return score;
  }

  /// Tries the fixed rules with a bound of `activations`, until one is not
  /// longer than the best timeline. False when none is.
  bool fitsInto(int activations, Budget &budget) {
    Problem smaller = problem;
    smaller.bound = activations;
    for (const PriorityRule &rule : fixedRules(problem)) {
      if (budget.left <= 0)
        return false;
      ++rules;
      Order order =
          scheduleByPriority(smaller, prioritiesOf(smaller, rule), budget);
      budget.spend(problem.actions());
      if (isLess(best.makespan, judge.leastShare() * orderRun.run(order)))
        continue;
      if (!isLess(best.makespan, take(order).makespan))
        return true;
    }
    return false;
  }

  void takeBest() {
    for (const Found &found : pool)
      if (!judge.mayPair()) // else it was taken when it was ranked
        take(found.order);
  }

  /// Ranks an order by what it takes with pairs, unless the pool has better
  /// ones only.
  void rankWithPairs(Found &found, Budget &budget) {
    bool isFull = pool.size() == kPool;
    if (isFull &&
        isLess(pool.back().makespan, judge.leastShare() * found.makespan))
      return;
    budget.spend(kJudgedAs * problem.actions());
    static_cast<Score &>(found) = take(found.order);
  }

  void tryRule(const PriorityRule &rule, Budget &budget) {
    ++rules;
    Found found;
    found.rule = rule;
    found.order =
        scheduleByPriority(problem, prioritiesOf(problem, rule), budget);
    budget.spend(problem.actions());
    found.makespan = orderRun.run(found.order);
    for (const std::vector<int> &row : found.order)
      found.activations =
          std::max(found.activations, peakActivations(problem, row));
    if (judge.mayPair())
      rankWithPairs(found, budget);
    auto place = std::lower_bound(pool.begin(), pool.end(), found);
    // One rule of each quality, so that the pool does not fill with copies.
    if (place != pool.end() && !(found < *place)) {
      *place = std::move(found);
      return;
    }
    pool.insert(place, std::move(found));
    if (pool.size() > kPool)
      pool.pop_back();
  }
};

/// The parts of the search, until one placement is at its lower bound.
void runSearches(std::deque<PlacementSearch> &searches, Budget budget) {
  for (PlacementSearch &search : searches)
    search.tryNamed();
  for (PlacementSearch &search : searches)
    search.tryFixedRules(budget);
  auto isDone = [&] {
    return std::ranges::any_of(
        searches, [](const PlacementSearch &s) { return s.isDone(); });
  };
  int64_t share = std::max<int64_t>(budget.left, 0) / int64_t(searches.size());
  for (PlacementSearch &search : searches)
    if (!isDone())
      search.tryRules({share / 2});
  for (PlacementSearch &search : searches)
    if (!isDone())
      search.improve({share / 2});
  double shortest = kNever;
  for (const PlacementSearch &search : searches)
    shortest = std::min(shortest, search.makespan());
  for (PlacementSearch &search : searches)
    if (!isLess(shortest, search.makespan()))
      search.reduceActivations({share / 4});
}

} // namespace

int64_t searchActionsOf(const ScheduleRequest &request) {
  const Shape &shape = request.shape;
  int64_t actions = int64_t(request.splitBackward ? 3 : 2) * shape.stages *
                    shape.repeats * shape.microbatches;
  return request.searchActions
             ? request.searchActions
             : std::min(kSearchActions, kSearchRuns * actions);
}

std::string SearchReport::str() const {
  std::string others = "no named schedule fits";
  if (!named.empty())
    others =
        "best named schedule " + named + " with " + numberCell(namedMakespan);
  return "repeats " + std::to_string(repeats) + ", " +
         (splitBackward ? "split" : "whole") + " backwards, " +
         std::to_string(rules) + " priority rules, placement " +
         nameOf(placement) + ", makespan " + numberCell(makespan) + ", " +
         others + ", lower bound " + numberCell(lowerBound) + ", distance " +
         percentCell(distance());
}

std::optional<Timeline> searchTimeline(const ScheduleRequest &request,
                                       SearchReport &report,
                                       std::string &error) {
  const Shape &shape = request.shape;
  // One microbatch has an activation in each chunk of a rank before the last
  // of them runs its backward.
  int least = shape.repeats + shape.hasUnpipelined;
  if (request.activations && request.activations < least) {
    error = "expected a bound of at least " +
            numberCell(wholeActivations(least, shape)) +
            " activations, which one microbatch needs on every rank, got " +
            numberCell(wholeActivations(request.activations, shape));
    return std::nullopt;
  }
  std::deque<PlacementSearch> searches;
  for (Placement placement : {Placement::Loop, Placement::V})
    if (placement == shape.placement ||
        (request.anyPlacement && shape.repeats > 1))
      searches.emplace_back(request, placement);
  runSearches(searches, {searchActionsOf(request)});
  report = SearchReport();
  report.namedMakespan = report.lowerBound = kNever;
  Candidate best;
  for (const PlacementSearch &search : searches)
    search.addTo(report, best);
  report.makespan = best.makespan;
  report.placement = best.timeline.shape.placement;
  report.repeats = shape.repeats;
  report.splitBackward = request.splitBackward;
  return std::move(best.timeline);
}

} // namespace rota::pipe
