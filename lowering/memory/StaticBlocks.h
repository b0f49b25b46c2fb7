// SPDX-License-Identifier: Apache-2.0
//
// The part of a stage's arena that lives as long as the program: parameters,
// gradients, optimizer states, constants, data, scratch.
#ifndef ROTA_LOWERING_MEMORY_STATICBLOCKS_H
#define ROTA_LOWERING_MEMORY_STATICBLOCKS_H

#include "lowering/memory/Layout.h"

#include <map>

namespace rota::memory {

/// The offsets of a parameter block in the arena of a stage. Tasks use `values`
/// and `gradients`; with windows, which have no fixed offset, these are -1.
struct BlockOffsets {
  int64_t values = -1, gradients = -1;
  // By entry of the block: the stored part and the gradient accumulator.
  std::vector<int64_t> stored, accumulators;
};

/// Offsets that the calls of a stage refer to.
struct StageOffsets {
  BlockOffsets embed, loss;
  std::map<int64_t, BlockOffsets> layers; // by layer number
  std::map<int64_t, int64_t> auxiliary;   // sums of layers that have them
  std::map<int64_t, int64_t> observed;    // tables, likewise
  int64_t constants = -1, scratch = -1;
  int64_t pairScratch =
      -1;          // scratch of the F of pairs; -1: the timeline has none
  int64_t end = 0; // end of the static part
};

/// Lays out the static part of each stage, with its regions, updates, tables
/// and data places in `program`. A parameter belongs to the first stage that
/// has its layer, to that of the first chunk if `embed` uses it, else to the
/// first that has the loss; others hold copies.
std::vector<StageOffsets> layOutStaticBlocks(const ModelLayout &layout,
                                             const ChunkTable &chunks,
                                             const pipe::Timeline &timeline,
                                             Program &program);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_STATICBLOCKS_H
