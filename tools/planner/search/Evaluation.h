// SPDX-License-Identifier: Apache-2.0
//
// The plan of a candidate by the whole compiler: what a search knows of it.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_EVALUATION_H
#define ROTA_TOOLS_PLANNER_SEARCH_EVALUATION_H

#include "tools/planner/search/Assessment.h"

namespace rota {

/// Seconds of a step by what takes them, of the mean rank. Their sum is the
/// step.
struct StepParts {
  double peak = 0;          // the model's operations at the peak of products
  double inefficiency = 0;  // other seconds of its operations
  double recomputation = 0; // of operations that are computed again
  double exposed = 0;       // waits for transfers alone
  double bubble = 0;        // waits for other stages
  double update = 0;        // after the timeline

  double seconds() const {
    return peak + inefficiency + recomputation + exposed + bubble + update;
  }
};

/// A candidate that has been planned whole.
struct PlannedCandidate {
  PlanCandidate candidate;
  std::string error; // why there is no plan; empty: there is one
  double seconds = 0;
  int64_t bytes = 0;     // of the rank that needs most
  double operations = 0; // of a mean rank in a step
  StepParts parts;       // once the operations of the model are known
  double leastSeconds = 0, leastBytes = 0; // the bounds
};

/// Plans the candidate. Calls from several threads at a time are safe.
PlannedCandidate evaluate(const PlanRequest &base,
                          const PlanCandidate &candidate);

/// Divides the seconds that `evaluation` has as work into parts. `operations`:
/// those of the model without what is computed again, of a mean rank in a step;
/// 0: not known.
void countParts(PlannedCandidate &evaluation, double operations,
                double peakPerSecond);

/// Whether a plan with the same mesh, microbatches and policy has fewer chunks
/// or a plainer order than `plan`, in the same time and almost the same memory.
bool isPlainer(const PlannedCandidate &other, const PlannedCandidate &plan);

/// The conditions of `base` for so many ranks.
StepConditions conditionsFor(const PlanRequest &base, int64_t ranks);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_EVALUATION_H
