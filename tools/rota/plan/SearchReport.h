// SPDX-License-Identifier: Apache-2.0
//
// What a search found, as text and as JSON.
#ifndef ROTA_TOOLS_ROTA_SEARCHREPORT_H
#define ROTA_TOOLS_ROTA_SEARCHREPORT_H

#include "tools/planner/search/Search.h"
#include "tools/rota/options/RunOptions.h"

#include <nlohmann/json_fwd.hpp>

namespace rota {

/// Refers to what it is of.
struct PlanSearchReport {
  const RunOptions &options;
  const SearchRequest &request;
  const SearchAnswer &answer; // with a best plan
};

std::string describeSearch(const PlanSearchReport &report);
nlohmann::ordered_json searchJson(const PlanSearchReport &report);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_SEARCHREPORT_H
