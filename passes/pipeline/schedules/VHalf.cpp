// SPDX-License-Identifier: Apache-2.0
//
// V-Half (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv
// 2405.15362): half of the activations of 1F1B, at most S + 3 of a chunk, two
// chunks a rank, in a v. In its building block a microbatch goes down the ranks
// in one slot each and up in two, and holds activations for half the time of
// ZB-V's. With F = I = W the paper's bubble is about 3*S slots; a rank is idle
// for at most 3*S - 4 slots (3*S - 3 for odd S) between its first action and
// its last when M >= S. The paper's own schedule holds 2 * floor((S + 2) / 2)
// activations, one or two less. 2 ranks, 4 microbatches:
//
//   rank 0  0F0 0F1 .   3F0 3I0 3W0 0F2 0I0 3F1 3I1 3W1 0W0 0F3 0I1 3F2 ...
//   rank 1  .   1F0 2F0 1F1 .   2I0 1I0 2F1 1F2 2W0 1W0 2I1 1I1 2F2 1F3 ...
#include "passes/pipeline/schedules/BuildingBlock.h"
#include "passes/pipeline/schedules/Schedules.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  // No two actions fall on one slot of six with these turns, and they have
  // the least idle time within S + 3 activations.
  BuildingBlock block{.down = 1, .up = 2, .turns = {5, 1, 1}};
  if (request.shape.stages % 2 == 1)
    block.turns = {2, 1, 4};
  return repeatBlock(request.shape, block);
}

} // namespace

const Schedule scheduleVHalf = {.name = "v-half",
                                .description =
                                    "two chunks in a v, in half of the memory",
                                .generate = generate,
                                .rule = {Placement::V, 2}};

} // namespace rota::pipe
