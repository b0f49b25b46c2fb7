// SPDX-License-Identifier: Apache-2.0
//
// ZB-V (Qi et al., Pipeline Parallelism with Controllable Memory, arXiv
// 2405.15362; first in arXiv 2401.10241, section 6), in the order of PyTorch's
// ScheduleZBVZeroBubble. Two chunks on each of S ranks, in a v: rank 0 has the
// first chunk and the last. With F = I = W a rank is never idle between its
// first action and its last when M >= 2*S - 1, and holds at most 2*S
// activations of a chunk. 2 ranks, 4 microbatches:
//
//   rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 ...
//   rank 1  .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 ...
//
// The order exists for at least 2*S - 1 microbatches; of fewer, the actions of
// the others are left out.
#include "passes/pipeline/schedules/RowWriter.h"
#include "passes/pipeline/schedules/Schedules.h"

#include <algorithm>

namespace rota::pipe {
namespace {

std::vector<Action> writeRow(const Shape &shape, int rank) {
  constexpr ActionKind F = ActionKind::Forward, I = ActionKind::BackwardInput,
                       W = ActionKind::BackwardWeight;
  int stages = shape.stages, following = stages - rank;
  int microbatches = std::max(2 * stages - 1, shape.microbatches);
  RowWriter row(shape, rank);
  auto repeat = [](int times, auto body) {
    for (int i = 0; i < times; ++i)
      body();
  };
  // Warm-up: chunk 0 until the first microbatch comes back in chunk 1.
  repeat(2 * following - 1, [&] { row.add(F, 0); });
  repeat(rank, [&] {
    row.add(F, 1);
    row.add(F, 0);
  });
  repeat(following, [&] {
    row.add(F, 1);
    row.addBackward(1);
  });
  // Steady state: each chunk has one F, I and W in six slots.
  while (row.count(F, 1) < microbatches) {
    if (row.count(F, 0) < microbatches)
      row.add(F, 0);
    row.addBackward(0);
    row.add(F, 1);
    row.addBackward(1);
  }
  // Cool-down: weight gradients wait so that input gradients are early.
  repeat(rank, [&] {
    row.add(I, 0);
    row.add(I, 1);
  });
  repeat(following, [&] {
    row.add(I, 0);
    row.add(W, 0);
  });
  for (int chunk : {1, 0})
    while (row.count(W, chunk) < microbatches)
      row.add(W, chunk);
  return row.take();
}

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  Timeline timeline{request.shape, {}};
  for (int rank = 0; rank < request.shape.stages; ++rank)
    timeline.ranks.push_back(writeRow(request.shape, rank));
  return timeline;
}

} // namespace

const Schedule scheduleZBV = {
    .name = "zbv",
    .description = "two chunks in a v, no idle time, in the memory of 1f1b",
    .generate = generate,
    .rule = {Placement::V, 2}};

} // namespace rota::pipe
