// SPDX-License-Identifier: Apache-2.0
//
// A section of the arena whose blocks are allocated and freed over time, and
// the transfers that may still use the bytes of freed blocks.
#ifndef ROTA_LOWERING_MEMORY_SECTION_H
#define ROTA_LOWERING_MEMORY_SECTION_H

#include "lowering/memory/BlockLives.h"
#include "lowering/memory/BlockPacking.h"
#include "lowering/memory/FreeList.h"

#include <map>
#include <optional>
#include <vector>

namespace rota::memory {

/// A place in a section; empty until something lives there.
struct ArenaBlock {
  int64_t offset = -1; // in the arena
  int64_t bytes = 0;
  size_t number = 0; // of the section's blocks with bytes opened before it
};

class Section {
public:
  /// Begins at offset `base` of the arena. Blocks take the best fit when they
  /// are opened.
  explicit Section(int64_t base) : base(base) {}
  /// The blocks take the places of `packing`, which was made from `times` of a
  /// section with the same calls.
  Section(int64_t base, Packing packing)
      : base(base), packing(std::move(packing)) {}
  /// Keeps the times of all blocks, before the first is opened.
  void recordTimes() { history.emplace(); }
  /// Adds the blocks that are opened from now on to `lives`, where that is not
  /// null. `actions` is the length of the row.
  void recordLives(BlockLives *list, size_t actions) {
    lives = list;
    firstLife = list ? list->size() : 0;
    lastAction = int(actions) - 1;
  }
  /// The position of the action that opens and closes blocks from now on.
  void beginAction(int position) { action = position; }

  /// A block of at least `bytes` for `tag`. Adds to `waits` the asynchronous
  /// actions that may still use its bytes.
  ArenaBlock open(int64_t bytes, BlockTag tag, std::vector<int> &waits);
  /// Takes `block` back, whose bytes nothing uses any more; leaves it empty.
  void close(ArenaBlock &block);
  /// Takes back a block that the asynchronous action `user`, which starts now,
  /// goes on using. Its bytes are given out only after the next compute action,
  /// so that the transfer has that long to complete before anything waits.
  void closeAfter(ArenaBlock &block, int user);
  /// A compute action, or a pair of them, has ended.
  void settle();
  /// From here to `letGo` no bytes of a closed block are given out: what one
  /// half of a pair frees is not for the other half.
  void hold() { isHolding = true; }
  void letGo();

  int64_t peak() const { return packing ? packing->peak : free.peak(); }
  /// After `recordTimes`: the blocks with bytes in the order in which they were
  /// opened, with times that count the blocks opened before.
  std::vector<TimedBlock> times() const;

private:
  struct Leaving {
    ArenaBlock block;
    int user;
  };
  struct Use {
    int64_t end;
    int action;
  };

  ArenaBlock allocate(int64_t bytes, BlockTag tag);
  void release(const ArenaBlock &block);

  int64_t base;
  FreeList free;
  std::optional<Packing> packing;                 // in place of `free`
  size_t opened = 0;                              // blocks with bytes
  std::optional<std::vector<TimedBlock>> history; // `end` is -1 until closed
  BlockLives *lives = nullptr;                    // null: not wanted
  size_t firstLife = 0; // in `lives`, of the section's first block
  int action = 0, lastAction = 0;
  std::vector<Leaving> leaving;
  bool isHolding = false;
  std::vector<ArenaBlock> kept; // closed since `hold`
  std::map<int64_t, Use> uses;  // last uses of free bytes, by offset; disjoint
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_SECTION_H
