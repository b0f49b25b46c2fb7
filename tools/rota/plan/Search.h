// SPDX-License-Identifier: Apache-2.0
//
// `rota plan --search`.
#ifndef ROTA_TOOLS_ROTA_SEARCH_H
#define ROTA_TOOLS_ROTA_SEARCH_H

#include "tools/planner/search/SearchRequest.h"
#include "tools/rota/options/RunOptions.h"

namespace rota {

/// The request of checked options: what is given is fixed.
SearchRequest searchRequest(const RunOptions &options);

/// Searches, prints what was found, and writes the best plan as a RUN.json
/// where there is an output.
int runSearch(const RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_SEARCH_H
