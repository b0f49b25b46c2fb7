// SPDX-License-Identifier: Apache-2.0
//
// 1F1B (PipeDream-Flush; Narayanan et al., arXiv 2006.09503): after a warm-up
// of S - s forwards, stage s alternates backward and forward, and so holds at
// most S - s activations. 3 stages, 4 microbatches:
//
//   rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
//   rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3
#include "passes/pipeline/schedules/Schedules.h"

#include <algorithm>

namespace rota::pipe {

std::optional<Timeline> generateOneFOneB(const ScheduleRequest &request,
                                         std::string &error) {
  const Shape &shape = request.shape;
  // A single rank runs all its chunks one after the other, as if they were one.
  if (shape.repeats != 1 && shape.stages != 1) {
    error = "the 1f1b schedule needs 1 repeat, got " +
            std::to_string(shape.repeats) + " repeats on " +
            std::to_string(shape.stages) +
            " stages (interleaved-1f1b takes several)";
    return std::nullopt;
  }
  Timeline timeline{shape, {}, request.delay};
  for (int rank = 0; rank < shape.stages; ++rank) {
    std::vector<Action> &row = timeline.ranks.emplace_back();
    int forwards = 0;
    auto forward = [&] {
      for (int repeat = 0; repeat < shape.repeats; ++repeat)
        row.push_back(
            {shape.chunkOf(rank, repeat), ActionKind::Forward, forwards});
      ++forwards;
    };
    int warmUp = std::min(shape.microbatches, shape.stages - rank);
    while (forwards < warmUp)
      forward();
    for (int m = 0; m < shape.microbatches; ++m) {
      for (int repeat = shape.repeats; repeat-- > 0;)
        row.push_back({shape.chunkOf(rank, repeat), ActionKind::Backward, m});
      if (forwards < shape.microbatches)
        forward();
    }
  }
  return timeline;
}

} // namespace rota::pipe
