// SPDX-License-Identifier: Apache-2.0
//
// Interleaved 1F1B (Narayanan et al., arXiv 2104.04473), in the order of
// PyTorch's ScheduleInterleaved1F1B and Megatron-LM: microbatches go through a
// rank's chunks in rounds of S; after (R-1)*S + 2*(S-1-s) + 1 forwards, stage s
// alternates backward and forward. 2 stages, 2 repeats, 4 microbatches:
//
//   rank 0  0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 .   2B2 ...
//   rank 1  .   1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 ...
#include "passes/pipeline/schedules/OneFOneBRows.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  const Shape &shape = request.shape;
  return oneFOneBTimeline(shape, [&](int rank) {
    return OneFOneBRow{(shape.repeats - 1) * shape.stages +
                           2 * (shape.stages - 1 - rank) + 1,
                       std::nullopt};
  });
}

} // namespace

const Schedule scheduleInterleavedOneFOneB = {.name = "interleaved-1f1b",
                                              .description =
                                                  "1f1b over several repeats",
                                              .generate = generate,
                                              .rule = kInterleaved};

} // namespace rota::pipe
