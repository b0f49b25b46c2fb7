// SPDX-License-Identifier: Apache-2.0
//
// Schedules that repeat a building block: the times of all actions of one
// microbatch (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv
// 2405.15362). The time for which the block holds activations decides the peak
// memory of the whole schedule.
#ifndef ROTA_PASSES_PIPELINE_SCHEDULES_BUILDINGBLOCK_H
#define ROTA_PASSES_PIPELINE_SCHEDULES_BUILDINGBLOCK_H

#include "ir/pipe/Timeline.h"

#include <array>

namespace rota::pipe {

/// A block for two chunks on each rank, in a v, in unit slots: F, I and W of
/// both chunks take six. A microbatch goes down the ranks in chunk 0, up in
/// chunk 1, and as input gradients down in chunk 1 and up in chunk 0.
struct BuildingBlock {
  /// Slots from a rank to the next one, down and up. At least 1.
  int down = 1, up = 1;
  /// Slots between the two actions of the rank at which a microbatch turns: F
  /// to F on the last rank, F to I on rank 0, I to I on the last rank. At
  /// least 1.
  std::array<int, 3> turns = {1, 1, 1};
};

/// A block for each microbatch, each six slots after the one before. A weight
/// gradient takes the first slot after its input gradient that no other action
/// of its rank takes in any block. No two actions of a rank may fall on the
/// same slot of six. Slots decide the order alone: each action then runs as
/// early as it can.
Timeline repeatBlock(const Shape &shape, const BuildingBlock &block);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SCHEDULES_BUILDINGBLOCK_H
