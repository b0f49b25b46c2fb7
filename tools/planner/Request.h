// SPDX-License-Identifier: Apache-2.0
//
// A request to the planner.
#ifndef ROTA_TOOLS_PLANNER_REQUEST_H
#define ROTA_TOOLS_PLANNER_REQUEST_H

#include "runtime/train/options/OptimizerOptions.h"
#include "runtime/train/options/SkipOptions.h"
#include "tools/compiler/CompilerOptions.h"

namespace rota {

/// A run of which a plan is wanted, and what of it the planner chooses: the
/// rest is fixed. What it chooses makes the step as short as the bound on
/// memory lets it be.
struct PlanRequest {
  CompilerOptions compiler;
  // These decide whether a step ends with a barrier (hasStepBarrier).
  OptimizerOptions optimizer;
  SkipOptions skip;

  bool chooseRepeats = false; // the chunks of a single stage
  bool chooseGathers = false; // how long weights stay gathered
  bool chooseRemat = false;   // the policy of each stage and chunk
  /// The bound on the activations of a schedule that searches.
  bool chooseActivations = false;
};

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_REQUEST_H
