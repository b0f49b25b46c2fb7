// SPDX-License-Identifier: Apache-2.0
//
// DualPipeV: DualPipe (DeepSeek-V3, arXiv 2412.19437) cut in half, which keeps
// one copy of the weights; in the order of DeepSeek's code and of PyTorch's
// ScheduleDualPipeV. Two chunks on each of S ranks, in a v, and at least 2*S
// microbatches. The published order runs a forward and a backward as a pair
// whose communication is hidden by computation. Here each backward is I and W,
// since the backwards of a program are all whole or all split; F and I are the
// pair, and W follows it. With F = I = W a rank is idle for at most S - 1 slots
// between its first action and its last, and holds at most 2*S + 1 activations
// of a chunk. 2 ranks, 4 microbatches, the pairs in brackets, which without the
// request's flag are actions in this order:
//
//   rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1(0F3 3I1)3W1(3F2 0I0)0W0 3I2 3W2 ...
//   rank 1  .   1F0 2F0 1F1 2F1 1F2 2I0 2W0(2F2 1I0)1W0(1F3 2I1)2W1(2F3 ...
#include "passes/pipeline/schedules/RowWriter.h"
#include "passes/pipeline/schedules/Schedules.h"

#include <deque>

namespace rota::pipe {
namespace {

/// A row, and the weight gradients that have been put off.
class DualRow {
public:
  DualRow(const Shape &shape, int rank)
      : stages(shape.stages), rank(rank), microbatches(shape.microbatches),
        row(shape, rank) {}

  std::vector<Action> write() {
    warmUp();
    steadyState();
    coolDown();
    return row.take();
  }

private:
  int stages, rank, microbatches;
  RowWriter row;
  std::deque<int> weights; // their chunks' rows, in the order of their I

  void forward(int repeat) { row.add(ActionKind::Forward, repeat); }
  void inputGradient(int repeat) {
    row.add(ActionKind::BackwardInput, repeat);
    weights.push_back(repeat);
  }
  void weightGradient() {
    row.add(ActionKind::BackwardWeight, weights.front());
    weights.pop_front();
  }

  void warmUp() {
    int following = stages - 1 - rank;
    for (int i = 0; i < 2 * following; ++i)
      forward(0);
    for (int i = 0; i < rank + 1; ++i) {
      forward(0);
      forward(1);
    }
    for (int i = 0; i < following; ++i) {
      row.addBackward(1);
      forward(1);
    }
  }

  /// Pairs: F of chunk 0 with the backward of chunk 1, F of chunk 1 with the
  /// backward of chunk 0.
  void steadyState() {
    for (int i = 0; i < microbatches - 2 * stages + rank + 1; ++i) {
      if (i == 0 &&
          rank == stages - 1) { // apart, which makes the bubble smaller
        forward(0);
        row.addBackward(1);
      } else {
        row.addPair(0, 1);
      }
      row.addPair(1, 0);
    }
    for (int i = 0; i < stages - 1 - rank; ++i) {
      row.addBackward(1);
      row.addPair(1, 0);
    }
  }

  /// Backwards alone. In the second half of the first loop, weight gradients
  /// are put off.
  void coolDown() {
    int rounds = rank + 1;
    for (int i = 0; i < 2 * rounds; ++i) {
      int repeat = 1 - i % 2;
      if (i >= rounds)
        inputGradient(repeat);
      else
        row.addBackward(repeat);
    }
    for (int i = 0; i < stages - 1 - rank; ++i) {
      weightGradient();
      inputGradient(0);
    }
    while (!weights.empty())
      weightGradient();
  }
};

std::optional<Timeline> generate(const ScheduleRequest &request,
                                 std::string &) {
  Timeline timeline{request.shape, {}};
  for (int rank = 0; rank < request.shape.stages; ++rank)
    timeline.ranks.push_back(DualRow(request.shape, rank).write());
  return timeline;
}

} // namespace

const Schedule scheduleDualPipeV = {
    .name = "dualpipev",
    .description = "two chunks in a v, pairs of a forward and a backward",
    .generate = generate,
    .rule = {Placement::V, 2, MicrobatchRule::TwiceStages},
    .hasPairs = true};

} // namespace rota::pipe
