// SPDX-License-Identifier: Apache-2.0
//
// RUN.json of options that were given and of others that were chosen.
#ifndef ROTA_TOOLS_ROTA_RUNFILE_H
#define ROTA_TOOLS_ROTA_RUNFILE_H

#include "tools/planner/search/PlanCandidate.h"
#include "tools/rota/options/RunOptions.h"

#include <nlohmann/json_fwd.hpp>

namespace rota {

/// The keys of a run: the options that were given, but for those that say what
/// to print, with `settings` in their places or added. Keys that no longer have
/// a meaning with these are left out.
nlohmann::ordered_json runFile(RunOptions options,
                               const std::vector<CandidateSetting> &settings);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_RUNFILE_H
