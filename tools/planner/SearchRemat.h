// SPDX-License-Identifier: Apache-2.0
//
// The search of `--remat auto` for policies of single chunks: some of a stage
// may have a faster policy where not all of them can.
#ifndef ROTA_TOOLS_PLANNER_SEARCHREMAT_H
#define ROTA_TOOLS_PLANNER_SEARCHREMAT_H

#include "tools/planner/MixedPlans.h"

namespace rota {

/// The most combinations of the policies of a stage's chunks that are all
/// tried.
inline constexpr int kMostCombinations = 128;
/// The most memory plans of a search. One plan tries something on each stage.
inline constexpr int kMostChunkPlans = 256;
/// The most simulations of a step for one policy of unpipelined layers.
inline constexpr int kMostChunkSteps = 256;

/// Policies of the chunks with which every stage takes at most `memory` bytes
/// and the simulated step is shortest, as far as the search looks; empty where
/// it finds none.
///
/// Policies that another one of the same chunk beats in time and in bytes are
/// left out. Where a stage has at most kMostCombinations of the others, all are
/// tried, but for those that a fitting one beats in the times of each chunk.
/// Otherwise the search begins with one policy for all chunks of the stage, the
/// fastest first, and then with each other one. From there chunks change their
/// policy one after the other, the change first that saves most seconds for
/// each byte of the chunk's live microbatches; once with policies that offload,
/// once without. Of what fits the search takes the combination of the stages
/// with the shortest step: of all where these are at most kMostChunkSteps, else
/// by changes of one stage at a time. Unpipelined layers get each of their
/// policies in turn. The result is the same for the same input.
std::vector<int> searchRemat(MixedPlans &plans, int64_t memory);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCHREMAT_H
