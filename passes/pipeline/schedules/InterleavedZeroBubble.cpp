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
//   rank 0  0F0 0F1 2F0 2F1 .   2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 ...
//   rank 1  .   1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 ...
#include "passes/pipeline/schedules/OneFOneBRows.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  const Shape &shape = request.shape;
  return oneFOneBTimeline(shape, [&](int rank) {
    return OneFOneBRow{shape.repeats * shape.stages - rank, rank};
  });
}

} // namespace

const Schedule scheduleInterleavedZeroBubble = {
    .name = "interleaved-zero-bubble",
    .description = "zb1p over several repeats",
    .generate = generate,
    .rule = kInterleaved};

} // namespace rota::pipe
