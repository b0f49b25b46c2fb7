// SPDX-License-Identifier: Apache-2.0
//
// Best-fit placement with a memory of who still uses free bytes.
#include "lowering/memory/Section.h"
#include "lowering/memory/Layout.h"

#include <algorithm>

namespace rota::memory {

ArenaBlock Section::allocate(int64_t bytes, BlockTag tag) {
  size_t number = opened++;
  int64_t offset = packing ? packing->offsets[number] : free.allocate(bytes);
  if (history)
    history->push_back({bytes, static_cast<int64_t>(number), -1});
  if (lives)
    lives->push_back({tag, bytes, action, lastAction});
  return {base + offset, bytes, number};
}

void Section::release(const ArenaBlock &block) {
  if (block.bytes == 0)
    return;
  if (!packing)
    free.free(block.offset - base, block.bytes);
  if (history)
    (*history)[block.number].end = static_cast<int64_t>(opened);
  if (lives)
    (*lives)[firstLife + block.number].last = action;
}

std::vector<TimedBlock> Section::times() const {
  std::vector<TimedBlock> blocks = *history;
  for (TimedBlock &block : blocks)
    if (block.end < 0)
      block.end = static_cast<int64_t>(opened);
  return blocks;
}

ArenaBlock Section::open(int64_t bytes, BlockTag tag, std::vector<int> &waits) {
  if (bytes == 0)
    return {base, 0, 0};
  bytes = alignUp(bytes);
  ArenaBlock block = allocate(bytes, tag);
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
