// SPDX-License-Identifier: Apache-2.0
//
// The part of a rank's arena that lives as long as the program: parameters,
// gradients, moments, constants, data.
#ifndef ROTA_LOWERING_MEMORY_STATICBLOCKS_H
#define ROTA_LOWERING_MEMORY_STATICBLOCKS_H

#include "lowering/memory/Layout.h"

#include <map>

namespace rota::memory {

/// Where a rank keeps a parameter block.
struct BlockPlace {
  int64_t values = -1, gradients = -1;
};

/// Offsets that the calls of a rank refer to.
struct RankPlaces {
  BlockPlace embed, loss;
  std::map<int64_t, BlockPlace> layers; // by layer number
  int64_t constants = -1, scratch = -1;
  int64_t end = 0; // of the static part
};

/// Lays out the static part of each rank, with its regions, updates, tables and
/// data places in `program`. A parameter belongs to the rank of its layer, of
/// the first chunk if `embed` uses it, else of the last chunk.
std::vector<RankPlaces> placeStaticBlocks(const Layout &layout,
                                          const ChunkTable &chunks,
                                          const pipe::Shape &shape,
                                          Program &program);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_STATICBLOCKS_H
