// SPDX-License-Identifier: Apache-2.0
//
// 1F1B (PipeDream-Flush; Narayanan et al., arXiv 2006.09503): after a warm-up
// of S - s forwards, stage s alternates backward and forward, and so holds at
// most S - s activations. 3 stages, 4 microbatches:
//
//   rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
//   rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3
#include "passes/pipeline/schedules/OneFOneBRows.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  const Shape &shape = request.shape;
  return oneFOneBTimeline(shape, [&](int rank) {
    return OneFOneBRow{shape.repeats * (shape.stages - rank), std::nullopt};
  });
}

} // namespace

const Schedule scheduleOneFOneB = {.name = "1f1b",
                                   .description =
                                       "one forward, one backward; one repeat",
                                   .generate = generate,
                                   .rule = kOneRepeat};

} // namespace rota::pipe
