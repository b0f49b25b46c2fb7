// SPDX-License-Identifier: Apache-2.0
//
// Breadth-first pipeline parallelism (Lamy-Poirier, arXiv 2211.05953),
// PyTorch's ScheduleLoopedBFS: a rank runs all microbatches of a chunk before
// those of its next chunk, so that the weights of a chunk are gathered once in
// each direction. These are the rows of gpipe for chunks in a loop; backwards
// take microbatches in ascending order, where PyTorch's descend. 2 stages, 2
// repeats, 3 microbatches:
//
//   rank 0  0F0 0F1 0F2 2F0 2F1 2F2 .   2B0 2B1 2B2 0B0 0B1 0B2
//   rank 1  .   1F0 1F1 1F2 3F0 3F1 3F2 3B0 ...
#include "passes/pipeline/schedules/Schedules.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &error) {
  return scheduleGPipe.generate(request, error);
}

} // namespace

const Schedule scheduleLoopedBFS = {
    .name = "looped-bfs",
    .description = "all microbatches of a chunk, then those of the next",
    .generate = generate,
    .rule = {Placement::Loop, 0, MicrobatchRule::Any, "gpipe takes v"}};

} // namespace rota::pipe
