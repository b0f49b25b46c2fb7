// SPDX-License-Identifier: Apache-2.0
//
// V-Min (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv
// 2405.15362): the building block in which a microbatch never waits, so that
// it holds activations for the shortest time. A third of the activations of
// 1F1B: at most 2 * floor((S + 4) / 3) of a chunk, two chunks a rank, in a v.
// With F = I = W the paper's bubble is about 4*S slots; a rank is idle for at
// most 4*S - 5 slots between its first action and its last (4*S - 4 when 3
// divides S). 2 ranks, 4 microbatches:
//
//   rank 0  0F0 .   .   3F0 3I0 3W0 0F1 0I0 0W0 3F1 3I1 3W1 0F2 ...
//   rank 1  .   1F0 2F0 .   .   2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 ...
#include "passes/pipeline/schedules/BuildingBlock.h"
#include "passes/pipeline/schedules/Schedules.h"

namespace rota::pipe {
namespace {

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  // From rank 0 down to the loss and back are 4*S slots in a block without
  // waiting. When 3 divides S, F of chunk 0 and the input gradient of chunk 1
  // would then fall on one slot of six, so the block waits at two turns.
  BuildingBlock block;
  if (request.shape.stages % 3 == 0)
    block.turns = {3, 1, 3};
  return repeatBlock(request.shape, block);
}

} // namespace

const Schedule scheduleVMin = {
    .name = "v-min",
    .description = "two chunks in a v, in a third of the memory",
    .generate = generate,
    .rule = {Placement::V, 2}};

} // namespace rota::pipe
