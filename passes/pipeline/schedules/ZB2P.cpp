// SPDX-License-Identifier: Apache-2.0
//
// ZB-H2, which others call ZB2P (Qi et al., Zero Bubble Pipeline Parallelism,
// arXiv 2401.10241): stage s has 2*(S - s) - 1 forwards before its first
// backward, as many as fill the time until the first gradient arrives, and puts
// its weight gradients off by 2*s input gradients. With F = I = W a rank is
// never idle between its first action and its last when M >= 2*S - 1, and holds
// at most 2*S - 1 activations. 3 stages, 5 microbatches:
//
//   rank 0  F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4
//   rank 1  .  F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4
#include "passes/pipeline/schedules/OneFOneBRows.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  const Shape &shape = request.shape;
  return oneFOneBTimeline(shape, [&](int rank) {
    return OneFOneBRow{shape.repeats * (2 * (shape.stages - rank) - 1),
                       2 * rank};
  });
}

} // namespace

const Schedule scheduleZB2P = {.name = "zb2p",
                               .description =
                                   "no idle time, in twice the memory of 1f1b",
                               .generate = generate,
                               .rule = kOneRepeatSplit};

} // namespace rota::pipe
