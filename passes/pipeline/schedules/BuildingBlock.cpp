// SPDX-License-Identifier: Apache-2.0
//
// See BuildingBlock.h.
#include "passes/pipeline/schedules/BuildingBlock.h"

#include <algorithm>
#include <cassert>

namespace rota::pipe {
namespace {

constexpr int kInterval = 6; // slots from a block to the next

/// An action of microbatch 0 and its slot.
struct PlacedAction {
  int slot;
  Action action;
};

/// The actions of one rank for one microbatch, by their slot in an interval.
std::vector<PlacedAction> placeActions(const Shape &shape, int rank,
                                       const BuildingBlock &block) {
  int last = shape.stages - 1;
  // Chunk 0 down, chunk 1 up, and back.
  int forward0 = block.down * rank;
  int turn = block.down * last + block.turns[0];
  int forward1 = turn + block.up * (last - rank);
  int top = turn + block.up * last + block.turns[1];
  int input1 = top + block.down * rank;
  int input0 =
      top + block.down * last + block.turns[2] + block.up * (last - rank);
  std::vector<PlacedAction> placed;
  std::array<bool, kInterval> isTaken = {};
  auto add = [&](int slot, ActionKind kind, int repeat) {
    assert(!isTaken[slot % kInterval] && "two actions in a slot");
    isTaken[slot % kInterval] = true;
    placed.push_back({slot, {shape.chunkOf(rank, repeat), kind, 0}});
  };
  auto firstFree = [&](int slot) {
    while (isTaken[slot % kInterval])
      ++slot;
    return slot;
  };
  add(forward0, ActionKind::Forward, 0);
  add(forward1, ActionKind::Forward, 1);
  add(input1, ActionKind::BackwardInput, 1);
  add(input0, ActionKind::BackwardInput, 0);
  add(firstFree(input1 + 1), ActionKind::BackwardWeight, 1);
  add(firstFree(input0 + 1), ActionKind::BackwardWeight, 0);
  std::sort(placed.begin(), placed.end(),
            [](const PlacedAction &a, const PlacedAction &b) {
              return a.slot % kInterval < b.slot % kInterval;
            });
  return placed;
}

} // namespace

Timeline repeatBlock(const Shape &shape, const BuildingBlock &block) {
  Timeline timeline{shape, {}};
  for (int rank = 0; rank < shape.stages; ++rank) {
    std::vector<PlacedAction> placed = placeActions(shape, rank, block);
    std::vector<Action> &row = timeline.ranks.emplace_back();
    int intervals = shape.microbatches;
    for (const PlacedAction &each : placed)
      intervals =
          std::max(intervals, shape.microbatches + each.slot / kInterval);
    // An interval has one action of each kind and chunk, of blocks that began
    // in it or before.
    for (int interval = 0; interval < intervals; ++interval)
      for (PlacedAction each : placed) {
        each.action.microbatch = interval - each.slot / kInterval;
        if (each.action.microbatch >= 0 &&
            each.action.microbatch < shape.microbatches)
          row.push_back(each.action);
      }
  }
  return timeline;
}

} // namespace rota::pipe
