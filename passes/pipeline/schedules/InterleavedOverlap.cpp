// SPDX-License-Identifier: Apache-2.0
//
// Interleaved 1F1B with one more forward in the warm-up of each stage (Kimi K2,
// arXiv 2507.20534): the backward and the forward that a stage alternates are
// then of microbatches that do not wait for one another, so that the
// communication of one is hidden by the computation of the other: a pair. It
// costs one more activation of a chunk. 2 stages, 2 repeats, 4 microbatches,
// the pairs in brackets, which without the request's flag are actions in this
// order:
//
//   rank 0  0F0 0F1 2F0 2F1 0F2 0F3(2B0 2F2)(2B1 2F3)0B0 .  0B1 .   2B2 ...
//   rank 1  .   1F0 1F1 3F0 3F1(3B0 1F2)(3B1 1F3)(1B0 3F2)(1B1 3F3)3B2 3B3 ...
#include "passes/pipeline/schedules/OneFOneBRows.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  const Shape &shape = request.shape;
  return oneFOneBTimeline(shape, [&](int rank) {
    return OneFOneBRow{(shape.repeats - 1) * shape.stages +
                           2 * (shape.stages - 1 - rank) + 2,
                       std::nullopt, /*pairs=*/true};
  });
}

} // namespace

const Schedule scheduleInterleavedOverlap = {
    .name = "interleaved-overlap",
    .description = "interleaved-1f1b with one more forward in the warm-up",
    .generate = generate,
    .rule = kInterleaved,
    .hasPairs = true};

} // namespace rota::pipe
