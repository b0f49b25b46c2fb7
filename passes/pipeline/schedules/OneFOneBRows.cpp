// SPDX-License-Identifier: Apache-2.0
//
// See OneFOneBRows.h.
#include "passes/pipeline/schedules/OneFOneBRows.h"

#include <algorithm>

namespace rota::pipe {
namespace {

std::vector<Action> writeRow(const Shape &shape, int rank,
                             const OneFOneBRow &numbers) {
  int pairs = shape.repeats * shape.microbatches;
  int forwards = 0, weights = 0;
  std::vector<Action> row;
  auto add = [&](ActionKind kind, int i) {
    row.push_back(interleavedPair(shape, rank, kind, i));
  };
  while (forwards < std::min(numbers.warmUp, pairs))
    add(ActionKind::Forward, forwards++);
  for (int i = 0; i < pairs; ++i) {
    add(numbers.weightLag ? ActionKind::BackwardInput : ActionKind::Backward,
        i);
    if (numbers.weightLag && i >= *numbers.weightLag)
      add(ActionKind::BackwardWeight, weights++);
    if (forwards == pairs)
      continue;
    row.back().startsPair = numbers.pairs;
    add(ActionKind::Forward, forwards++);
  }
  while (numbers.weightLag && weights < pairs)
    add(ActionKind::BackwardWeight, weights++);
  return row;
}

} // namespace

Action interleavedPair(const Shape &shape, int rank, ActionKind kind, int i) {
  int round = i / (shape.stages * shape.repeats);
  int repeat = i / shape.stages % shape.repeats;
  if (!isForward(kind))
    repeat = shape.repeats - 1 - repeat;
  return {shape.chunkOf(rank, repeat), kind,
          round * shape.stages + i % shape.stages};
}

Timeline oneFOneBTimeline(const Shape &shape,
                          const std::function<OneFOneBRow(int rank)> &rowOf) {
  Timeline timeline{shape, {}};
  for (int rank = 0; rank < shape.stages; ++rank)
    timeline.ranks.push_back(writeRow(shape, rank, rowOf(rank)));
  return timeline;
}

} // namespace rota::pipe
