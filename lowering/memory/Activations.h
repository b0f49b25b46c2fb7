// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a stage that live for a chunk and microbatch.
#ifndef ROTA_LOWERING_MEMORY_ACTIVATIONS_H
#define ROTA_LOWERING_MEMORY_ACTIVATIONS_H

#include "lowering/memory/StagePlan.h"

namespace rota::memory {

/// Gives the stage's drafts the offsets of their blocks and what they wait for;
/// adds the region of activations, which begins at `base`, and sets the sizes
/// of the arenas. Returns false, with the error noted, when the timeline asks
/// for what is not there.
bool planActivations(StagePlan &plan, int64_t base);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_ACTIVATIONS_H
