// SPDX-License-Identifier: Apache-2.0
//
// A plan as a run that other engines' configurations are written from.
#ifndef ROTA_TOOLS_PLANNER_ENGINERUNS_H
#define ROTA_TOOLS_PLANNER_ENGINERUNS_H

#include "tools/planner/Planner.h"
#include "tools/planner/engines/EngineRun.h"

namespace rota {

/// The run of `answer`, which is the plan of `request`. Optimizer steps are
/// those that are given, if any.
engines::EngineRun engineRunOf(const PlanRequest &request,
                               const PlanAnswer &answer,
                               std::optional<int64_t> steps = {});

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_ENGINERUNS_H
