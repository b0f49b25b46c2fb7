// SPDX-License-Identifier: Apache-2.0
//
// Best-fit placement of blocks that come and go in a known order.
#ifndef ROTA_LOWERING_MEMORY_FREELIST_H
#define ROTA_LOWERING_MEMORY_FREELIST_H

#include <cstdint>
#include <map>
#include <set>

namespace rota::memory {

/// Hands out offsets from 0 up. A block takes the smallest gap that holds it,
/// the lowest of equal ones, and otherwise extends the end. The same calls give
/// the same offsets; a call costs the logarithm of the number of gaps.
class FreeList {
public:
  /// An offset for `bytes`, both multiples of the blocks' alignment.
  int64_t allocate(int64_t bytes);
  /// Gives back what `allocate(bytes)` returned.
  void free(int64_t offset, int64_t bytes);
  /// The largest end that any block had.
  int64_t peak() const { return highest; }

private:
  void insertGap(int64_t offset, int64_t bytes);
  void eraseGap(int64_t offset, int64_t bytes);

  std::map<int64_t, int64_t> gaps;              // offset -> bytes
  std::set<std::pair<int64_t, int64_t>> bySize; // (bytes, offset)
  int64_t end = 0;                              // nothing lives from here on
  int64_t highest = 0;
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_FREELIST_H
