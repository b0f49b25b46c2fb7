// SPDX-License-Identifier: Apache-2.0
//
// The updates that SUM_GRAD and REFRESH of a stage exchange, and the waits of
// these and of the uses of weights.
#ifndef ROTA_LOWERING_MEMORY_UPDATEPLAN_H
#define ROTA_LOWERING_MEMORY_UPDATEPLAN_H

#include "lowering/memory/StagePlan.h"

namespace rota::memory {

/// The updates of the chunk's parameters whose gradient is summed in `round`
/// (Parameter::reduce), by a transfer: of those with one accumulator. Others
/// have terms of other stages, or of the other end, at the step's end.
std::vector<int> summedUpdates(const StagePlan &plan, int chunk, int round);

/// The updates of the chunk's parameters whose weights are gathered, but for
/// those that other stages have copies of, which come after the update. What
/// both ends on one stage use is gathered for chunk 0.
std::vector<int> refreshedUpdates(const StagePlan &plan, int chunk);

/// Adds waits and rounds to the stage's drafts: a SUM_GRAD waits for the
/// REDUCE_GRADs of its chunk or the SUM_GRAD before it, and the first use or
/// UNSHARD of a chunk for its REFRESH.
void planExchanges(StagePlan &plan);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_UPDATEPLAN_H
