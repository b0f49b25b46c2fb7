// SPDX-License-Identifier: Apache-2.0
//
// The candidates of a search, with what is known of each.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_CANDIDATES_H
#define ROTA_TOOLS_PLANNER_SEARCH_CANDIDATES_H

#include "tools/planner/search/Search.h"
#include "tools/planner/search/Work.h"

#include <map>
#include <memory>

namespace rota {

struct CandidateItem {
  PlanCandidate candidate;
  const LayerCosts *costs = nullptr;
  Assessment assessment;
  bool isTaken = false; // planned, or about to be
  bool exists = true;   // the schedule, for the shape
};

class Candidates {
public:
  /// Refers to its arguments.
  Candidates(const SearchRequest &request, const SearchModel &model,
             SearchWork &work);

  /// Costs the layers under the likely divisions, and makes all candidates of
  /// these.
  void costDivisions();
  /// Costs divisions that may be best under the other policies as well.
  void costPolicies();
  /// Simulates those with the shortest estimates; once more, the next ones.
  /// Whether there were any.
  bool simulate();

  /// The next ones to plan, at most `count`: those with the shortest estimates,
  /// whose bounds are at most `seconds` and the memory.
  std::vector<const CandidateItem *> next(size_t count, double seconds);
  /// One that is to be planned since it has the shortest estimate of those
  /// whose estimated memory is at most `bytes`; null where that is planned.
  const CandidateItem *shortestIn(double bytes);
  /// Those with the least bounds of memory that are not planned.
  std::vector<const CandidateItem *> smallest(size_t count);

  /// Compares a plan with its estimates, to correct those of its like. Where
  /// the compiler has refused three candidates with the same axes and planned
  /// none, others with these are not tried.
  void learn(const CandidateItem &item, const PlannedCandidate &plan);

  /// Operations of the model for a mean rank in a step of the candidate,
  /// without what is computed again.
  double operationsOf(const PlanCandidate &candidate);
  /// Operations a second of a rank's products at the peak.
  double peak() const;

  SearchCounts counts() const;
  void countLeftOut(double seconds, SearchCounts &counts) const;
  double leastStep() const { return least; }
  /// Why the first division without a plan has none.
  const std::string &refusal() const { return firstRefusal; }

private:
  struct CostKey {
    LayerDivision division;
    std::string remat;
    bool splitBackward = false;
    auto operator<=>(const CostKey &) const = default;
  };
  using CostMap = std::map<CostKey, std::unique_ptr<LayerCosts>>;
  /// Plans of one sort have estimates with like errors.
  using Sort = std::tuple<const LayerCosts *, std::string, pipe::GatherMode>;
  struct Correction {
    double seconds = 1, bytes = 1;
  };
  /// Plans of candidates that divide by the same axes.
  struct Tries {
    int made = 0, refused = 0;
    /// Whether the others of the axes are not tried either.
    bool areRefused() const { return made == 0 && refused >= 3; }
  };

  /// Costs layers, as long as such a share of the time is left.
  void cost(const std::vector<CostKey> &keys, double left);
  const LayerCosts *find(const CostKey &key) const;
  void addCandidates(const std::vector<CostKey> &keys);
  /// Work of the division, divided evenly over all ranks; 0: it has no plan.
  double leastStepOf(const CostKey &key) const;
  /// The division that may be best first, with its least estimate.
  std::vector<LayerDivision> likelyDivisions() const;
  void costSplits();
  bool isBeyondMemory(const CandidateItem &item) const {
    return memory > 0 && item.assessment.leastBytes > memory;
  }
  bool isRefused(const CandidateItem &item) const;
  Correction correctionOf(const CandidateItem &item) const;
  /// The estimate, more where the plan is not likely to fit.
  double rankOf(const CandidateItem &item) const;
  void sortByRank(size_t begin);

  const SearchRequest &request;
  const SearchModel &model;
  SearchWork &work;
  StepConditions conditions;
  PlanRequest layerRequest; // `request.plan` on the machine of the conditions
  double memory, least = 0;
  std::vector<LayerDivision> divisions;
  size_t unlikelyDivisions = 0;
  std::string firstRefusal;
  CostMap costs;
  std::vector<CandidateItem> items;
  size_t simulated = 0; // the first ones of `items`
  std::map<Sort, Correction> corrections;
  std::map<std::vector<bool>, Tries> tries; // by which axes are above 1
};

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_CANDIDATES_H
