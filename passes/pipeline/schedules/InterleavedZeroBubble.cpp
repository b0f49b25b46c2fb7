// SPDX-License-Identifier: Apache-2.0
//
// Interleaved 1F1B with split backwards (Qi et al., Zero Bubble Pipeline
// Parallelism, arXiv 2401.10241), in the order of PyTorch's
// ScheduleInterleavedZeroBubble: rounds of S microbatches as in interleaved
// 1F1B, R*S - s forwards before the first backward of stage s, which puts its
// weight gradients off by s input gradients. With F = I = W a rank is idle for
// at most S - 1 slots between its first action and its last. It holds at most
// R*S activations of a chunk. 2 stages, 2 repeats, 4 microbatches:
//
//   rank 0  ...
#include "passes/pipeline/schedules/OneFOneBRows.h"
#include "passes/pipeline/schedules/Schedules.h"

namespace rota::pipe {

std::optional<Timeline>
generateInterleavedZeroBubble(const ScheduleRequest &request, std::string &) {
  const Shape &shape = request.shape;
  return oneFOneBTimeline(shape, [&](int rank) {
    return OneFOneBRow{shape.repeats * shape.stages - rank, rank};
  });
}

} // namespace rota::pipe
