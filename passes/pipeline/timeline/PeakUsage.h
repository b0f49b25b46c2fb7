// SPDX-License-Identifier: Apache-2.0
//
// The largest amounts that a rank holds in the course of its row.
#ifndef ROTA_PASSES_PIPELINE_TIMELINE_PEAKUSAGE_H
#define ROTA_PASSES_PIPELINE_TIMELINE_PEAKUSAGE_H

#include "passes/pipeline/timeline/Simulator.h"

namespace rota::pipe {

/// Fills the peaks of `report`. The order of the row decides all of them but
/// that of gradients, whose memory is free when their reduction has ended.
/// `communicates`: the timeline has sends and receives; `spans`: those of the
/// row.
void countPeakUsage(const Timeline &timeline, int rank, bool communicates,
                    const std::vector<TimeSpan> &spans, RankUsage &report);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_TIMELINE_PEAKUSAGE_H
