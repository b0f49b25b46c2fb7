// SPDX-License-Identifier: Apache-2.0
//
// Placement of blocks whose times are all known.
#ifndef ROTA_LOWERING_MEMORY_BLOCKPACKING_H
#define ROTA_LOWERING_MEMORY_BLOCKPACKING_H

#include <cstdint>
#include <vector>

namespace rota::memory {

/// A block that is there from time `begin` until time `end`, at least one.
struct TimedBlock {
  int64_t bytes = 0;
  int64_t begin = 0, end = 0;
};

struct Packing {
  std::vector<int64_t> offsets; // offset of each block
  int64_t peak = 0;             // the largest end of a block
};

/// Gives each block the lowest offset at which no block that is there at the
/// same time has its bytes, the largest blocks first, since a small block finds
/// a gap beside large ones. While that takes more bytes than are there at any
/// time, the blocks that end last go first in another try, a few times. Times
/// begin at 0; the work grows with the sum of the lengths of the blocks.
Packing packBlocks(const std::vector<TimedBlock> &blocks);

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_BLOCKPACKING_H
