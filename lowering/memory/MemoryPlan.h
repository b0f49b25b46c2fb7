// SPDX-License-Identifier: Apache-2.0
//
// From a compiled model and a timeline to a program: one static arena per rank,
// every block's place in it, and each action's calls.
#ifndef ROTA_LOWERING_MEMORY_MEMORYPLAN_H
#define ROTA_LOWERING_MEMORY_MEMORYPLAN_H

#include "lowering/memory/BlockLives.h"
#include "lowering/memory/Layout.h"

namespace rota::memory {

/// Lays out the arena of every stage's ranks for `timeline`, which has passed
/// its verifier and has communication, and fills in mesh (where there is none:
/// the stages alone), regions, updates and actions of a copy of
/// `layout.program`. What a rank holds, from the start of its arena:
///
///   parameters, compute copies, gradients, optimizer: for its whole life;
///     its parts at storage or optimizer division
///   constants
///   data: tokens or targets, losses, and logits if compiled in, by microbatch
///   scratch: one block, as large as its neediest task's; one more for the
///     forward halves of pairs, if any
///   with weights divided over `fsdp`, see WindowPlan.h
///     windows: gathered weights                 UNSHARD .. RESHARD
///              their gradients    first B or W .. REDUCE_GRAD complete
///   activations: two outgoing messages per direction; the rest lives from the
///     action that makes it to the last that reads it:
///       input of a chunk     RECV_F (or the F that makes it) .. B or W
///       its layers' inputs and residuals                   F .. B or W
///       residuals that may rest in host memory
///                 F .. OFFLOAD complete, FETCH .. B or W; between in the
///                 host arena; without OFFLOAD as other residuals
///       input of the loss                     the last chunk's F .. B or W
///       cotangent of a chunk's output             RECV_B (or B) .. B or I
///       cotangents kept for the weights' half              I .. W
///
/// Bytes that one half of a pair frees are not given to the other half, and the
/// first half waits for all that either needs.
///
/// Unpipelined layers, if any, are on every stage: the first updates their
/// parameters; the others have losses, gradients and copies of their own.
///
/// Places follow from best fit in the timeline's order, so the plan is the same
/// for the same input, and the time is linear in the number of calls but for a
/// logarithm. It does not depend on the sizes of the mesh's axes. On failure
/// says in `error` what does not fit. `lives`, where it is not null, becomes
/// the blocks of windows and activations of each stage, in the order of
/// opening, those of windows first.
bool planMemory(const ModelLayout &layout, const ChunkTable &chunks,
                const pipe::Timeline &timeline, Program &program,
                std::string &error, std::vector<BlockLives> *lives = nullptr);

/// The plan by use and stage as an aligned table for people, in MiB.
std::string describePlan(const Program &program);

/// Two more rows of that table: `memory`, and by how many MiB each stage's
/// device bytes exceed it. Stages that fit have a '-'.
std::string describeExcess(const Program &program, int64_t memory);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_MEMORYPLAN_H
