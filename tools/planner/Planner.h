// SPDX-License-Identifier: Apache-2.0
//
// The planner: from a request to a plan, with what was chosen and why.
#ifndef ROTA_TOOLS_PLANNER_PLANNER_H
#define ROTA_TOOLS_PLANNER_PLANNER_H

#include "tools/compiler/Compile.h"
#include "tools/planner/ChooseRemat.h"

namespace rota {

/// The planner's choices for a request.
struct PlanChoices {
  int64_t repeats = 0; // chunks of the single stage; at most 1: not divided
  std::optional<pipe::GatherMode> gathers; // none: not open
  std::vector<PolicyPlan> policies; // the rows that `remat` was chosen of
  std::optional<RematChoice> remat; // none: it was not asked for
  double activations = 0;           // 0: no bound was asked for, or is needed
};

/// Chooses what `request` leaves open, and fixes that in the request. False
/// where nothing fits or there is no plan, with the reason in `error`.
bool chooseOpen(PlanRequest &request, PlanChoices &choices, std::string &error);

/// A plan, and the choices that it is made with.
struct PlanAnswer {
  Plan plan;
  PlanChoices choices;
};

/// Chooses what `request` leaves open, fixes that in the request, and plans the
/// run. Errors of choices are in `error`, others are diagnostics of `context`.
ExitCode makePlan(mlir::MLIRContext &context, PlanRequest &request,
                  PlanAnswer &answer, std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_PLANNER_H
