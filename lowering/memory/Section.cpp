// SPDX-License-Identifier: Apache-2.0
//
// Best-fit placement with a memory of who still uses free bytes.
#include "lowering/memory/Section.h"
#include "lowering/memory/Layout.h"

#include <algorithm>

namespace rota::memory {

int64_t Section::allocate(int64_t bytes) {
  auto number = static_cast<int64_t>(history.size());
  history.push_back({bytes, number, -1});
  int64_t offset = isPacked ? packing.offsets[number] : free.allocate(bytes);
  live[offset] = number;
  return offset;
}

void Section::release(const ArenaBlock &block) {
  if (block.offset < 0 || block.bytes == 0)
    return;
  auto found = live.find(block.offset - base);
  history[found->second].end = static_cast<int64_t>(history.size());
  live.erase(found);
  if (!isPacked)
    free.free(block.offset - base, block.bytes);
}

std::vector<TimedBlock> Section::times() const {
  std::vector<TimedBlock> blocks = history;
  for (TimedBlock &block : blocks)
    if (block.end < 0)
      block.end = static_cast<int64_t>(blocks.size());
  return blocks;
}

ArenaBlock Section::open(int64_t bytes, std::vector<int> &waits) {
  if (bytes == 0)
    return {base, 0};
  bytes = alignUp(bytes);
  ArenaBlock block{base + allocate(bytes), bytes};
  auto at = uses.upper_bound(block.offset);
  if (at != uses.begin() && std::prev(at)->second.end > block.offset)
    --at;
  while (at != uses.end() && at->first < block.offset + bytes) {
    if (std::find(waits.begin(), waits.end(), at->second.action) == waits.end())
      waits.push_back(at->second.action);
    // Whatever takes the rest of these bytes comes after this action.
    at = uses.erase(at);
  }
  return block;
}

void Section::close(ArenaBlock &block) {
  if (isHolding)
    kept.push_back(block);
  else
    release(block);
  block = {};
}

void Section::letGo() {
  isHolding = false;
  for (ArenaBlock &block : kept)
    close(block);
  kept.clear();
}

void Section::closeAfter(ArenaBlock &block, int user) {
  if (block.offset >= 0)
    leaving.push_back({block, user});
  block = {};
}

void Section::settle() {
  for (Leaving &l : leaving) {
    if (l.block.bytes > 0)
      uses[l.block.offset] = {l.block.offset + l.block.bytes, l.user};
    close(l.block);
  }
  leaving.clear();
}

} // namespace rota::memory
