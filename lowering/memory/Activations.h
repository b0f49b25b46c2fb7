// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a stage that live for a chunk and microbatch, and its calls.
#ifndef ROTA_LOWERING_MEMORY_ACTIVATIONS_H
#define ROTA_LOWERING_MEMORY_ACTIVATIONS_H

#include "lowering/memory/Windows.h"

namespace rota::memory {

/// Gives the stage's actions their calls, messages, copies to and from host
/// memory, and what they wait for; adds the regions of activations and sets the
/// sizes of the arenas. Returns false, with the error noted, when the timeline
/// asks for what is not there.
bool planActivations(StagePlan &plan, const Windows &windows);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_ACTIVATIONS_H
