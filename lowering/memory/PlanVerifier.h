// SPDX-License-Identifier: Apache-2.0
//
// Proves a memory plan by running it on names instead of numbers.
#ifndef ROTA_LOWERING_MEMORY_PLANVERIFIER_H
#define ROTA_LOWERING_MEMORY_PLANVERIFIER_H

#include "lowering/memory/Layout.h"

namespace rota::memory {

/// Checks, without looking at how the plan was made:
///   regions   one after the other without overlap, and all inside the arenas
///   static    parameters, gradients, moments, constants and data lie inside
///             their regions at multiples of 64, no two on the same bytes
///   calls     each compute action calls the tasks that it must, in order
///   values    every call and every SEND finds, at the bytes that it reads, the
///             very value that it wants (of that layer and microbatch), written
///             by what came before and overwritten by nothing since
///   weights   every call finds its layer's weights: where they are stored or,
///             with windows, gathered from there since the last RESHARD
///   gradients every call adds to zeros or to the sum so far of its layer, each
///             sum is added to its stored part once, and before its bytes are
///             overwritten
///   waits     bytes that a RECV, UNSHARD or FETCH writes are read only after
///             waiting for it, and those that a SEND, REDUCE_GRAD or OFFLOAD
///             reads are overwritten only after waiting for that
/// Training and evaluation are walked. On failure names stage, action and block
/// in `error`.
bool verifyPlan(const ModelLayout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, const Program &program,
                std::string &error);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_PLANVERIFIER_H
