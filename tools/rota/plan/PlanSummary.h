// SPDX-License-Identifier: Apache-2.0
//
// A plan on its machine in a few lines.
#ifndef ROTA_TOOLS_ROTA_PLANSUMMARY_H
#define ROTA_TOOLS_ROTA_PLANSUMMARY_H

#include "tools/planner/Forecast.h"
#include "tools/rota/options/RunOptions.h"

#include <nlohmann/json_fwd.hpp>

namespace rota {

/// The forecast of a plan that was made of these options.
Forecast forecastOf(const RunOptions &options, const Plan &plan);

/// Time, speed, utilization, exposed transfers and memory, and what the options
/// ask about a whole run.
std::string describeForecast(const RunOptions &options, const Plan &plan);

/// What a whole run takes, in lines: "1e+12 tokens: 191.3 days, ...".
std::string describeCampaign(const CampaignRequest &asked, const Campaign &run);
nlohmann::ordered_json campaignJson(const Campaign &run);

/// Adds the same facts to an object.
void addForecast(const RunOptions &options, const Plan &plan,
                 nlohmann::ordered_json &json);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_PLANSUMMARY_H
