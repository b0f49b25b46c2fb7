// SPDX-License-Identifier: Apache-2.0
//
// The output of `rota plan`.
#ifndef ROTA_TOOLS_ROTA_PLANREPORT_H
#define ROTA_TOOLS_ROTA_PLANREPORT_H

#include "tools/planner/MeasuredCosts.h"
#include "tools/planner/Planner.h"
#include "tools/planner/search/Evaluation.h"
#include "tools/rota/options/RunOptions.h"

#include <nlohmann/json_fwd.hpp>

namespace rota {

/// A plan with the policies that it is compared with.
struct PlanReport {
  PlanAnswer answer;
  std::optional<MeasuredStep> measured; // from the trace that the options name
  std::vector<PlannedCandidate> searched; // of a search, this plan first
};

/// The report for people, and for programs: as a JSON object, and as a text of
/// it that has the timeline too, with an action in a line.
std::string describePlan(const RunOptions &options, const PlanReport &report);
nlohmann::ordered_json planJson(const RunOptions &options,
                                const PlanReport &report);
std::string planJsonText(const nlohmann::ordered_json &json,
                         const PlanReport &report);

/// Writes the page that the options name, with this object of the plan; an exit
/// code.
int writePlanPage(const RunOptions &options, const PlanReport &report,
                  nlohmann::ordered_json json);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_PLANREPORT_H
