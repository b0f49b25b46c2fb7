// SPDX-License-Identifier: Apache-2.0
//
// A plan in the words of another engine.
#ifndef ROTA_TOOLS_ROTA_EXPORTPLAN_H
#define ROTA_TOOLS_ROTA_EXPORTPLAN_H

#include "tools/planner/Planner.h"
#include "tools/rota/options/RunOptions.h"

namespace rota {

/// Prints the configuration of `options.exported`, or writes its files into the
/// folder `options.output`, where none of them may be; prints what has no
/// equivalent.
int exportPlan(const RunOptions &options, const PlanRequest &request,
               const PlanAnswer &answer);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_EXPORTPLAN_H
