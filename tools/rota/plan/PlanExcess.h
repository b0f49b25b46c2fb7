// SPDX-License-Identifier: Apache-2.0
//
// The output of `rota plan` for a plan over its memory.
#ifndef ROTA_TOOLS_ROTA_PLANEXCESS_H
#define ROTA_TOOLS_ROTA_PLANEXCESS_H

#include "tools/planner/WhatFits.h"
#include "tools/rota/options/RunOptions.h"

#include <nlohmann/json_fwd.hpp>

namespace rota {

/// The memory table with the excess, the largest uses by name, and what fits:
/// for people, and for programs.
std::string describeExcess(const WhatFits &excess, const RunOptions &options);
nlohmann::ordered_json excessJson(const WhatFits &excess,
                                  const RunOptions &options);

/// Prints one of them where the request takes more memory than it has; nothing
/// where it failed for another reason.
void printExcess(const PlanRequest &request, const RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_PLANEXCESS_H
