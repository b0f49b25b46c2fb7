// SPDX-License-Identifier: Apache-2.0
//
// GPipe (Huang et al., arXiv 1811.06965): all forwards, then all backwards;
// over several repeats, row after row. 3 stages, 4 microbatches:
//
//   rank 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3
//   rank 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3
//   rank 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3
#include "passes/pipeline/schedules/Schedules.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &error) {
  const Shape &shape = request.shape;
  Timeline timeline{shape, {}, request.delay};
  for (int rank = 0; rank < shape.stages; ++rank) {
    std::vector<Action> &row = timeline.ranks.emplace_back();
    for (int repeat = 0; repeat < shape.repeats; ++repeat)
      for (int m = 0; m < shape.microbatches; ++m)
        row.push_back({shape.chunkOf(rank, repeat), ActionKind::Forward, m});
    for (int repeat = shape.repeats; repeat-- > 0;)
      for (int m = 0; m < shape.microbatches; ++m)
        row.push_back({shape.chunkOf(rank, repeat), ActionKind::Backward, m});
  }
  return timeline;
}

} // namespace

const Schedule scheduleGPipe = {.name = "gpipe",
                                .description =
                                    "all forwards, then all backwards",
                                .generate = generate};

} // namespace rota::pipe
