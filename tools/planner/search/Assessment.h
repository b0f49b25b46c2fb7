// SPDX-License-Identifier: Apache-2.0
//
// Time and memory of a candidate without the compiler, from the costs of its
// layers: bounds that its plan never goes below, and estimates.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_ASSESSMENT_H
#define ROTA_TOOLS_PLANNER_SEARCH_ASSESSMENT_H

#include "tools/planner/search/LayerCosts.h"

namespace rota {

/// What steps run on.
struct StepConditions {
  mlir::rota::Machine machine; // as one of all ranks finds it
  bool hasBarrier = true;      // steps end with one (hasStepBarrier)
};

struct Assessment {
  double leastSeconds = 0, seconds = 0; // of a step: bound, estimate
  double leastBytes = 0, bytes = 0;     // of the rank that needs most
};

/// The bounds, with M microbatches, chunks c of a rank, and stage s:
///   time    fill(s) + M * sum over c of (F + B) + drain(s), of the stage with
///           most, where fill(s) is F of the first chunks of the stages before
///           with their messages, and drain(s) their B; 0 where backwards are
///           split, since a W may be last, and both 0 where steps have no
///           barrier. Gathers of weights, one after the other
///   memory  weights, gradients and optimizer states of the stage's layers, one
///           microbatch's activations of all its chunks, and the scratch of the
///           layer that needs least
/// The estimates add what gathers and sums of gradients are likely to expose.
Assessment assess(const PlanCandidate &candidate, const LayerCosts &costs,
                  const StepConditions &conditions);

/// The bounds and estimates with the simulated timeline: its makespan without
/// transfers but messages, and the activations that are held at a time. Nothing
/// where the schedule does not exist for the shape, or is a search.
std::optional<Assessment> simulateCandidate(const PlanCandidate &candidate,
                                            const LayerCosts &costs,
                                            const StepConditions &conditions);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_ASSESSMENT_H
