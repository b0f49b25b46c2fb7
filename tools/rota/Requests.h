// SPDX-License-Identifier: Apache-2.0
//
// The options of the command line as requests to the compiler and the planner.
#ifndef ROTA_TOOLS_ROTA_REQUESTS_H
#define ROTA_TOOLS_ROTA_REQUESTS_H

#include "tools/planner/Request.h"
#include "tools/planner/RequestedTimeline.h"
#include "tools/rota/options/RunOptions.h"

namespace rota {

/// The run that options for a model describe, once they are checked. Logits are
/// kept when `options.write` asks for them.
PlanRequest planRequest(const RunOptions &options);

/// The timeline that the options of `rota schedule` describe.
TimelineRequest timelineRequest(const RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_REQUESTS_H
