// SPDX-License-Identifier: Apache-2.0
//
// Memory and operations of a model under each rematerialization policy.
#ifndef ROTA_TOOLS_PLANNER_COMPAREPOLICIES_H
#define ROTA_TOOLS_PLANNER_COMPAREPOLICIES_H

#include "lowering/report/StepTime.h"
#include "passes/differentiate/Residuals.h"
#include "tools/compiler/Compile.h"
#include "tools/planner/MixedPlans.h"
#include "tools/planner/Request.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rota {

/// A rank of one stage under a policy.
struct StageNeed {
  int64_t bytes = 0; // deviceBytes
  /// In a step on the request's machine: of its computation, with what it
  /// computes again, and of its waits for copies to and from host memory alone.
  double seconds = 0;
  /// Of its waits for weights, gradients and updates alone.
  double exposed = 0;
};

/// A chunk under a policy.
struct ChunkNeed {
  int stage = -1;     // -1: of unpipelined layers, which all stages have
  int64_t bytes = 0;  // that its microbatches keep for their backward at most
  double seconds = 0; // computation in a step on that machine
};

/// The plan of a model under one policy. Bytes are those of the rank that needs
/// most of each.
struct PolicyPlan {
  std::string policy;
  bool chosen = false; // by the request
  std::string error;   // why there is no plan; empty: there is one
  int64_t peakBytes = 0, activationBytes = 0, hostBytes = 0;
  double operations = 0; // operations in a step; 0: there is no plan
  double recomputed = 0; // operations beyond those of the policy that keeps
                         // everything, as a share of these
  mlir::rota::ResidualSummary residuals; // residuals of all layers
  std::vector<StageNeed> stages;
  std::vector<ChunkNeed> chunks;
  std::shared_ptr<const PolicyParts> parts; // none where there is no plan
  StepTime time;                            // of a step with a barrier
  std::optional<double> steadyStep; // the timeline without a step barrier
  /// Of a mean rank in a timeline: waits for collectives inside functions.
  double exposedInside = 0;
};

/// Plans a model without a bound on memory, in a context of its own and without
/// verification. Nothing where it cannot, with the reason in `error`.
std::optional<Plan> estimatePlan(CompilerOptions options, std::string &error);

/// The row of such a plan, whose parts it takes.
void readPlan(const PlanRequest &request, Plan &plan, PolicyPlan &row);

/// Plans the model of `request` as it is with `estimatePlan`. What it cannot
/// plan is a row with an error.
void planPolicy(const PlanRequest &request, PolicyPlan &row);

/// Sets `recomputed` of a row; `everything` is that of the policy that keeps
/// everything.
void countRecomputed(PolicyPlan &row, const PolicyPlan &everything);

/// Plans the model of `request` once under each policy that has a name, in the
/// order of passes/differentiate/Remat.h, and last under that of the request
/// if it is another. Each row comes from the whole compiler up to the memory
/// plan; what it cannot plan is a row with an error, nothing is printed.
std::vector<PolicyPlan> comparePolicies(const PlanRequest &request);

/// The rows as an aligned table, in MiB; the chosen one is marked.
std::string describePolicies(const std::vector<PolicyPlan> &rows);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_COMPAREPOLICIES_H
