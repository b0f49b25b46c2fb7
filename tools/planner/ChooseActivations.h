// SPDX-License-Identifier: Apache-2.0
//
// Schedule `auto` under a bound on the bytes of a rank.
#ifndef ROTA_TOOLS_PLANNER_CHOOSEACTIVATIONS_H
#define ROTA_TOOLS_PLANNER_CHOOSEACTIVATIONS_H

#include "tools/planner/Request.h"

namespace rota {

/// The search for a timeline counts activations, whose bytes are known only
/// once the model is planned. So this bisects `activations`, planning
/// the model for each, to the largest number whose plan fits the memory;
/// 0 where no bound is needed. False where no number fits or there is no plan
/// at all, with the reason in `error`.
bool chooseActivations(PlanRequest &request, std::string &error);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_CHOOSEACTIVATIONS_H
