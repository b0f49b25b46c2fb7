// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/Planner.h"

#include "tools/planner/ChooseActivations.h"
#include "tools/planner/ChooseWindows.h"

#include "llvm/ADT/STLExtras.h"

namespace rota {

/// Marks the chosen policies among the rows.
static void markChosen(PlanChoices &choices) {
  const PolicyPlan &chosen = choices.remat->plan;
  auto row = llvm::find_if(choices.policies, [&](const PolicyPlan &policy) {
    return policy.policy == chosen.policy;
  });
  if (row == choices.policies.end())
    choices.policies.push_back(chosen);
  else
    row->chosen = true;
}

bool chooseOpen(PlanRequest &request, PlanChoices &choices,
                std::string &error) {
  std::optional<PolicyPlan> known;
  if (request.chooseRepeats) {
    known = chooseRepeats(request);
    choices.repeats = request.compiler.schedule.repeats;
    request.chooseRepeats = false;
  }
  if (request.chooseGathers) {
    chooseGathers(request, std::move(known));
    choices.gathers = request.compiler.complete.mode;
    request.chooseGathers = false;
  }
  // Policies are chosen for the timeline of the whole memory; a bound on
  // activations as well would leave nothing to choose.
  if (request.chooseActivations && !request.chooseRemat) {
    if (!chooseActivations(request, error))
      return false;
    choices.activations = request.compiler.schedule.activations;
  }
  if (!request.chooseRemat)
    return true;
  choices.policies = comparePolicies(request);
  choices.remat = chooseRemat(request, choices.policies, error);
  if (!choices.remat)
    return false;
  request.compiler.setRemat(choices.remat->plan.policy);
  request.chooseRemat = false;
  markChosen(choices);
  return true;
}

ExitCode makePlan(mlir::MLIRContext &context, PlanRequest &request,
                  PlanAnswer &answer, std::string &error) {
  if (!chooseOpen(request, answer.choices, error))
    return kExitBadInput;
  auto model = mlir::rota::buildModel(context, request.compiler.model,
                                      request.compiler.build);
  if (failed(model))
    return kExitBadInput;
  return planModel(*model, request.compiler, answer.plan);
}

} // namespace rota
