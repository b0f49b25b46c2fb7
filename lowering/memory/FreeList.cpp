// SPDX-License-Identifier: Apache-2.0
//
// Best-fit placement: gaps by offset, to merge neighbours, and by size.
#include "lowering/memory/FreeList.h"

#include <algorithm>

namespace rota::memory {

void FreeList::insertGap(int64_t offset, int64_t bytes) {
  gaps.emplace(offset, bytes);
  bySize.emplace(bytes, offset);
}

void FreeList::eraseGap(int64_t offset, int64_t bytes) {
  gaps.erase(offset);
  bySize.erase({bytes, offset});
}

int64_t FreeList::allocate(int64_t bytes) {
  auto fit = bySize.lower_bound({bytes, 0});
  if (fit == bySize.end()) {
    int64_t offset = end;
    end += bytes;
    highest = std::max(highest, end);
    return offset;
  }
  auto [size, offset] = *fit;
  eraseGap(offset, size);
  if (size > bytes)
    insertGap(offset + bytes, size - bytes);
  return offset;
}

void FreeList::free(int64_t offset, int64_t bytes) {
  if (bytes == 0)
    return;
  auto next = gaps.lower_bound(offset);
  if (next != gaps.end() && next->first == offset + bytes) {
    int64_t size = next->second;
    eraseGap(next->first, size);
    bytes += size;
  }
  auto previous = gaps.lower_bound(offset);
  if (previous != gaps.begin()) {
    --previous;
    auto [start, size] = *previous;
    if (start + size == offset) {
      eraseGap(start, size);
      offset = start;
      bytes += size;
    }
  }
  if (offset + bytes == end)
    end = offset;
  else
    insertGap(offset, bytes);
}

} // namespace rota::memory
