// SPDX-License-Identifier: Apache-2.0
//
// ZB-H1, which PyTorch and Megatron-LM call ZB1P (Qi et al., Zero Bubble
// Pipeline Parallelism, arXiv 2401.10241): 1F1B with split backwards. Stage s
// puts its weight gradients off by s input gradients, so that each stage holds
// at most the S activations that stage 0 of 1F1B does. With F = I = W a rank is
// idle for S - 1 slots between its first action and its last, a third of 1F1B's
// time. 3 stages, 4 microbatches:
//
//   rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3
//   rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
//   rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
#include "passes/pipeline/schedules/OneFOneBRows.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  const Shape &shape = request.shape;
  return oneFOneBTimeline(shape, [&](int rank) {
    return OneFOneBRow{shape.repeats * (shape.stages - rank), rank};
  });
}

} // namespace

const Schedule scheduleZB1P = {
    .name = "zb1p",
    .description = "1f1b with weight gradients apart, in the memory of 1f1b",
    .generate = generate,
    .rule = kOneRepeatSplit};

} // namespace rota::pipe
