// SPDX-License-Identifier: Apache-2.0
//
// The search for the plan with the shortest step that fits the memory.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_SEARCH_H
#define ROTA_TOOLS_PLANNER_SEARCH_SEARCH_H

#include "tools/planner/search/Evaluation.h"
#include "tools/planner/search/SearchRequest.h"

namespace rota {

/// The most plans of a ranking.
inline constexpr size_t kRankedPlans = 10;

/// How many candidates a search considered, and why it did not plan them.
struct SearchCounts {
  size_t candidates = 0;
  size_t planned = 0;      // whole
  size_t unplannable = 0;  // the compiler has no plan, or no schedule exists
  size_t beyondMemory = 0; // the bound of memory is more than there is
  size_t slower = 0;       // the bound of time is above the last of the ranking
  /// The estimate is longer than those that were planned, or the search was
  /// cut; the bounds do not exclude them.
  size_t unlikely = 0;
  size_t overMemory = 0; // planned, and need more memory than there is
  size_t divisions = 0, unlikelyDivisions = 0;
};

struct SearchAnswer {
  std::vector<PlannedCandidate> best; // that fit, the shortest step first
  /// Plans than which no planned one is both shorter and smaller, by time.
  std::vector<PlannedCandidate> front;
  std::optional<PlannedCandidate> nearest; // with fewest bytes, where none fits
  SearchCounts counts;
  std::string refusal; // why the compiler had no plan, of the first such one
  /// No step of the searched divisions is shorter: the least work that a
  /// division has, divided evenly, without bubble and exposed transfers.
  double leastStep = 0;
  bool isCut = false; // the time was over
  double seconds = 0; // that the search took
  /// Seconds of its parts: "layers", "timelines", "plans", "variants".
  std::vector<std::pair<std::string, double>> workSeconds;
};

/// Searches in this order:
///   1. costs the layers once under each division, without recomputation and
///      with all of it, and under other policies where a division may be best
///   2. bounds and estimates time and memory of all candidates
///   3. simulates the timelines of those with the shortest estimates
///   4. plans the best of these whole, in order of their estimates, as long as
///      their bounds leave it open whether they are among the ten best
///   5. plans variants of the best: layers split by cost, policies by stage
/// Nothing, with the reason in `error`, where the request is wrong or the model
/// has no plan at all.
std::optional<SearchAnswer> searchPlan(const SearchRequest &request,
                                       std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_SEARCH_H
