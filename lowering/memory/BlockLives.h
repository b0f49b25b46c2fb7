// SPDX-License-Identifier: Apache-2.0
//
// The blocks of an arena that come and go, and the actions that hold them, for
// reports.
#ifndef ROTA_LOWERING_MEMORY_BLOCKLIVES_H
#define ROTA_LOWERING_MEMORY_BLOCKLIVES_H

#include "runtime/text/Names.h"

#include <cstdint>
#include <vector>

namespace rota {
namespace memory {

/// The content of a block of windows or activations.
enum class BlockUse {
  Weights,        // of a layer or an end, gathered
  Gradients,      // of a layer or an end, until they are reduced
  Messages,       // two that leave in a direction
  Inputs,         // input of a chunk's layers, or of the loss
  Residuals,      // values of a chunk's layers that backward reads
  Offloaded,      // residuals that may rest in host memory, while they do not
  Cotangents,     // cotangent of a chunk's output or of a layer's input
  KeptCotangents, // left by I, for W
};
inline constexpr int kBlockUses = 1 + int(BlockUse::KeptCotangents);

} // namespace memory
template <> struct Names<memory::BlockUse> {
  static constexpr const char *list[] = {
      "gathered weights", "gradients to reduce", "messages",
      "inputs of chunks", "residuals",           "residuals to offload",
      "cotangents",       "kept cotangents"};
};
namespace memory {

/// What a block is for.
struct BlockTag {
  BlockUse use = BlockUse::Inputs;
  int chunk = -1; // -1: of no single chunk
};

/// A block of a stage, whose bytes no other block has from the begin of one
/// action to the end of another.
struct BlockLife {
  BlockTag tag;
  int64_t bytes = 0;
  int first = 0, last = 0; // positions in the stage's row of the timeline
};
using BlockLives = std::vector<BlockLife>;

} // namespace memory
} // namespace rota

#endif // ROTA_LOWERING_MEMORY_BLOCKLIVES_H
