// SPDX-License-Identifier: Apache-2.0
#include "lowering/memory/BlockPacking.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

namespace rota::memory {
namespace {

using Blocks = std::vector<TimedBlock>;

int64_t endOf(const Blocks &blocks) {
  int64_t end = 0;
  for (const TimedBlock &block : blocks)
    end = std::max(end, block.end);
  return end;
}

/// The most bytes that are there at a time, below which no packing ends.
int64_t mostAtOnce(const Blocks &blocks) {
  std::vector<int64_t> bytes(endOf(blocks));
  for (const TimedBlock &block : blocks)
    for (int64_t time = block.begin; time < block.end; ++time)
      bytes[time] += block.bytes;
  return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

/// Tries of `packBlocks`.
constexpr int kTries = 16;

class BlockPacker {
public:
  explicit BlockPacker(const Blocks &blocks)
      : blocks(blocks), packing{std::vector<int64_t>(blocks.size()), 0},
        placed(endOf(blocks)) {}

  /// Packs the blocks of the largest `priorities` first, of equal ones the
  /// larger, of equal ones the earlier.
  Packing run(const std::vector<int> &priorities) {
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::tuple(priorities[b], blocks[b].bytes, a) <
             std::tuple(priorities[a], blocks[a].bytes, b);
    });
    for (size_t block : order)
      place(block);
    return std::move(packing);
  }

private:
  void place(size_t block) {
    int64_t offset = lowestGap(block);
    packing.offsets[block] = offset;
    packing.peak = std::max(packing.peak, offset + blocks[block].bytes);
    for (int64_t time = blocks[block].begin; time < blocks[block].end; ++time)
      placed[time].push_back(block);
  }

  int64_t lowestGap(size_t block) {
    neighbours.clear();
    for (int64_t time = blocks[block].begin; time < blocks[block].end; ++time)
      for (size_t other : placed[time])
        neighbours.push_back({packing.offsets[other], other});
    std::sort(neighbours.begin(), neighbours.end());
    int64_t offset = 0;
    for (auto [begin, other] : neighbours) {
      if (begin - offset >= blocks[block].bytes)
        break;
      offset = std::max(offset, begin + blocks[other].bytes);
    }
    return offset;
  }

  const Blocks &blocks;
  Packing packing;
  std::vector<std::vector<size_t>> placed; // blocks with a place, by time
  std::vector<std::pair<int64_t, size_t>> neighbours; // offset, block
};

} // namespace

Packing packBlocks(const std::vector<TimedBlock> &blocks) {
  int64_t bound = mostAtOnce(blocks);
  std::vector<int> priorities(blocks.size());
  Packing best = BlockPacker(blocks).run(priorities);
  Packing last = best;
  for (int i = 1; i < kTries && best.peak > bound; ++i) {
    for (size_t block = 0; block < blocks.size(); ++block)
      if (last.offsets[block] + blocks[block].bytes == last.peak)
        ++priorities[block];
    last = BlockPacker(blocks).run(priorities);
    if (last.peak < best.peak)
      best = last;
  }
  return best;
}

} // namespace rota::memory
