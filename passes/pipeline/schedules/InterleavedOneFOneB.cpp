// SPDX-License-Identifier: Apache-2.0
//
// Interleaved 1F1B (Narayanan et al., arXiv 2104.04473), in the order of
// PyTorch's ScheduleInterleaved1F1B and Megatron-LM: microbatches go through a
// rank's chunks in rounds of S; after a warm-up of (R-1)*S + 2*(S-1-s)
// forwards, stage s alternates forward and backward. 2 stages, 2 repeats, 4
// microbatches:
//
//   rank 0  0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 .   2B2 ...
//   rank 1  .   1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 ...
#include "passes/pipeline/schedules/Schedules.h"

#include <algorithm>

namespace rota::pipe {
namespace {

/// The i-th pair of a rank in one direction.
Action pairAt(const Shape &shape, int rank, ActionKind kind, int i) {
  int round = i / (shape.stages * shape.repeats);
  int repeat = i / shape.stages % shape.repeats;
  if (kind == ActionKind::Backward)
    repeat = shape.repeats - 1 - repeat;
  return {shape.chunkOf(rank, repeat), kind,
          round * shape.stages + i % shape.stages};
}

} // namespace

std::optional<Timeline>
generateInterleavedOneFOneB(const ScheduleRequest &request,
                            std::string &error) {
  const Shape &shape = request.shape;
  if (shape.placement != Placement::Loop) {
    error = "the interleaved-1f1b schedule needs the placement 'loop', got 'v'";
    return std::nullopt;
  }
  if (shape.microbatches % shape.stages != 0) {
    error = "expected microbatches to be a multiple of stages for the "
            "interleaved-1f1b schedule, got " +
            std::to_string(shape.microbatches) + " and " +
            std::to_string(shape.stages);
    return std::nullopt;
  }
  Timeline timeline{shape, {}, request.delay};
  int pairs = shape.repeats * shape.microbatches;
  for (int rank = 0; rank < shape.stages; ++rank) {
    std::vector<Action> &row = timeline.ranks.emplace_back();
    int warmUp = std::min(pairs, (shape.repeats - 1) * shape.stages +
                                     2 * (shape.stages - 1 - rank));
    for (int i = 0; i < warmUp; ++i)
      row.push_back(pairAt(shape, rank, ActionKind::Forward, i));
    for (int i = 0; i < pairs; ++i) {
      if (warmUp + i < pairs)
        row.push_back(pairAt(shape, rank, ActionKind::Forward, warmUp + i));
      row.push_back(pairAt(shape, rank, ActionKind::Backward, i));
    }
  }
  return timeline;
}

} // namespace rota::pipe
