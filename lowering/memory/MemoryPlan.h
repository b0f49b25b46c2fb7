// SPDX-License-Identifier: Apache-2.0
//
// From a compiled model and a timeline to a program: one static arena per rank,
// every block's place in it, and each action's calls.
#ifndef ROTA_LOWERING_MEMORY_MEMORYPLAN_H
#define ROTA_LOWERING_MEMORY_MEMORYPLAN_H

#include "lowering/memory/Layout.h"

namespace rota::memory {

/// Lays out every rank's arena for `timeline`, which has passed its verifier
/// and has communication, and fills in ranks, regions, updates and actions of a
/// copy of `layout.program`. What a rank holds:
///
///   parameters, compute copies, gradients, optimizer: for its whole life
///   data: tokens or targets, losses, and logits if compiled in, by microbatch
///   scratch: one block, as large as its neediest task's
///   activations: two outgoing messages per direction; the rest lives from the
///     action that makes it to the last that reads it:
///       input of a chunk     RECV_F (or the F that makes it) .. B or W
///       its layers' inputs and residuals                   F .. B or W
///       input of the loss                     the last chunk's F .. B or W
///       cotangent of a chunk's output             RECV_B (or B) .. B or I
///       cotangents kept for the weights' half              I .. W
///
/// Places in the activations follow from best fit in the timeline's order, so
/// the plan is the same for the same input, and the time is linear in the
/// number of calls but for a logarithm. On failure says in `error` what does
/// not fit.
bool planMemory(const Layout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, Program &program,
                std::string &error);

/// The plan by use and rank as an aligned table for people, in MiB.
std::string describePlan(const Program &program);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_MEMORYPLAN_H
