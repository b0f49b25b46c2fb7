// SPDX-License-Identifier: Apache-2.0
//
// Interleaved 1F1B with one more forward in the warm-up of each stage (Kimi K2,
// arXiv 2507.20534): the backward and the forward that a stage alternates are
// then of microbatches that do not wait for one another, so that the
// communication of one hides behind the computation of the other. It costs one
// more activation of a chunk. 2 stages, 2 repeats, 4 microbatches:
//
//   rank 0  ...
#include "passes/pipeline/schedules/OneFOneBRows.h"
#include "passes/pipeline/schedules/Schedules.h"

namespace rota::pipe {

std::optional<Timeline>
generateInterleavedOverlap(const ScheduleRequest &request, std::string &) {
  const Shape &shape = request.shape;
  return oneFOneBTimeline(shape, [&](int rank) {
    return OneFOneBRow{(shape.repeats - 1) * shape.stages +
                           2 * (shape.stages - 1 - rank) + 2,
                       std::nullopt};
  });
}

} // namespace rota::pipe
