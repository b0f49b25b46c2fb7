// SPDX-License-Identifier: Apache-2.0
//
// Eager 1F1B (Zhuang et al., On Optimizing the Communication of Model
// Parallelism, arXiv 2211.05322): 1F1B whose warm-up on stage s has 2*(S - s) -
// 1 forwards, so that a message has the time of a forward and a backward to
// arrive in, for up to 2*S - 1 activations. 3 stages, 5 microbatches:
//
//   rank 0  F0 F1 F2 F3 F4 B0 .  B1 .  B2 .  B3 .  B4
//   rank 1  .  F0 F1 F2 B0 F3 B1 F4 B2 .  B3 .  B4
//   rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4
#include "passes/pipeline/schedules/OneFOneBRows.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  const Shape &shape = request.shape;
  return oneFOneBTimeline(shape, [&](int rank) {
    return OneFOneBRow{shape.repeats * (2 * (shape.stages - rank) - 1),
                       std::nullopt};
  });
}

} // namespace

const Schedule scheduleEagerOneFOneB = {
    .name = "eager-1f1b",
    .description = "1f1b with a longer warm-up, to hide messages",
    .generate = generate,
    .rule = kOneRepeat};

} // namespace rota::pipe
