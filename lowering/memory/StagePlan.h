// SPDX-License-Identifier: Apache-2.0
//
// The state that the parts of one stage's plan share.
#ifndef ROTA_LOWERING_MEMORY_STAGEPLAN_H
#define ROTA_LOWERING_MEMORY_STAGEPLAN_H

#include "lowering/memory/BlockLives.h"
#include "lowering/memory/StaticBlocks.h"

namespace rota::memory {

/// Offsets inside the stashes of a chunk, the same for all its microbatches,
/// and the stashes' bytes.
struct StashLayout {
  // Per layer, [0] unused; in `offloaded` for kinds whose input may leave.
  std::vector<int64_t> inputs;
  std::vector<int64_t> residuals;  // per layer
  std::vector<int64_t> offloaded;  // per layer
  std::vector<int64_t> cotangents; // per layer, then of the loss
  int64_t stashBytes = 0, offloadedBytes = 0, cotangentBytes = 0;
};

/// Lays out the stashes of a chunk.
StashLayout layOutStashes(const ModelLayout &layout, const ChunkTable &chunks,
                          int chunk);

/// A parameter block of a chunk, and where the stage keeps its parts.
struct ChunkBlock {
  const ParameterBlock *block;
  const BlockOffsets *offsets;
};

/// An action while it is planned.
struct ActionDraft {
  std::vector<int64_t> slots;
  std::vector<int> waits;
  // Lists of offsets by block of the chunk, see WindowPlan.h: the weights and
  // gradients that the action finds or moves, and the gradients that it clears.
  int values = -1, gradients = -1, cleared = -1;
  int round = 0; // SUM_GRAD: the number of those of the chunk before it
};

/// A stage while its actions are planned.
struct StagePlan {
  const ModelLayout &layout;
  const ChunkTable &chunks;
  const pipe::Shape &shape;
  const std::vector<Action> &row;
  int number;
  const StageOffsets &offsets;
  const Program &program;
  Stage &stage;
  std::string &error;
  std::vector<ActionDraft> drafts;  // by action of `row`
  std::vector<StashLayout> stashes; // by chunk; empty for other stages' chunks
  BlockLives *lives = nullptr;      // null: not wanted
  /// Numbers in `stage.updates`, by parameter and offset of what is stored.
  std::map<std::pair<int, int64_t>, int> updates = {};

  bool isLast(int chunk) const { return chunk == shape.chunks() - 1; }

  bool hasLayers(int chunk) const { return !chunks[chunk].empty(); }

  const TaskGroup &kindOf(int chunk, size_t layer) const {
    return layout.kinds[chunks[chunk][layer].kind];
  }

  /// Whether the activation that enters the chunk may rest on the host.
  bool offloadsInput(int chunk) const {
    return hasLayers(chunk) && kindOf(chunk, 0).offloadsInput;
  }

  std::vector<ChunkBlock> blocksOf(int chunk) const {
    std::vector<ChunkBlock> blocks;
    if (chunk == 0)
      blocks.push_back({&layout.embed.block, &offsets.embed});
    for (const ChunkLayer &l : chunks[chunk])
      blocks.push_back(
          {&layout.kinds[l.kind].block, &offsets.layers.at(l.layer)});
    if (isLast(chunk))
      blocks.push_back({&layout.loss.block, &offsets.loss});
    return blocks;
  }

  /// Notes that `action` cannot be planned, unless another could not before.
  void fail(int action, const std::string &what) const {
    const Action &a = row[action];
    if (error.empty())
      error = "stage " + std::to_string(number) + ": chunk " +
              std::to_string(a.chunk) + ", microbatch " +
              std::to_string(a.microbatch) + ", " + toString(a.kind) + " " +
              what;
  }
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_STAGEPLAN_H
