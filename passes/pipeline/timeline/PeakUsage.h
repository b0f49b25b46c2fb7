// SPDX-License-Identifier: Apache-2.0
//
// What a rank holds, followed over its row: order alone decides it, not time.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_PEAKUSAGE_H
#define ROTA_PASSES_PIPELINE_TIMELINE_PEAKUSAGE_H

#include "passes/pipeline/timeline/Simulator.h"

namespace rota::pipe {

/// Fills the peaks of `report` but that of gradients. `communicates`: the
/// timeline has sends and receives.
void countPeakUsage(const Timeline &timeline, int rank, bool communicates,
                    RankUsage &report);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_PEAKUSAGE_H
