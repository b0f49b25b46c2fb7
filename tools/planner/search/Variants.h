// SPDX-License-Identifier: Apache-2.0
//
// Variants of good plans that only the compiler can judge.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_VARIANTS_H
#define ROTA_TOOLS_PLANNER_SEARCH_VARIANTS_H

#include "tools/planner/search/Evaluation.h"
#include "tools/planner/search/Work.h"

namespace rota {

/// Plans variants of `plans`: layers split by cost, policies of each stage and
/// chunk for the memory, optimizer states on all replicas. What the request
/// fixes stays.
std::vector<PlannedCandidate>
planVariantsOf(const SearchRequest &request,
               const std::vector<PlannedCandidate> &plans, SearchWork &work);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_VARIANTS_H
