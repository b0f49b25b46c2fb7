// SPDX-License-Identifier: Apache-2.0
//
// Proves a memory plan by running it on names instead of numbers.
#ifndef ROTA_LOWERING_MEMORY_PLANVERIFIER_H
#define ROTA_LOWERING_MEMORY_PLANVERIFIER_H

#include "lowering/memory/Layout.h"

namespace rota::memory {

/// Checks, without looking at how the plan was made:
///   regions   one after the other without overlap, and all inside the arena
///   static    parameters, gradients, moments, tables and data lie inside their
///             regions at multiples of 64, no two on the same bytes
///   calls     each compute action calls the tasks that it must, in order
///   values    every call and every SEND finds, at the bytes that it reads, the
///             very value that it wants (of that layer and microbatch), written
///             by what came before and overwritten by nothing since; a RECV's
///             bytes are read only after waiting for it, and a SEND's
///             overwritten only after waiting for that. Training and evaluation
///             are walked.
/// On failure names rank, action and block in `error`.
bool verifyPlan(const Layout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, const Program &program,
                std::string &error);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_PLANVERIFIER_H
