// SPDX-License-Identifier: Apache-2.0
//
// Writes a rank's row for schedules that take the microbatches of each chunk
// in ascending order.
#ifndef ROTA_PASSES_PIPELINE_SCHEDULES_ROWWRITER_H
#define ROTA_PASSES_PIPELINE_SCHEDULES_ROWWRITER_H

#include "ir/pipe/Timeline.h"

#include <utility>

namespace rota::pipe {

class RowWriter {
public:
  RowWriter(const Shape &shape, int rank)
      : shape(shape), rank(rank),
        counts(size_t(kActionKindCount) * shape.repeats) {}

  /// Adds the action of `kind` for the rank's chunk in row `repeat`, for the
  /// next microbatch that has none. The action counts but is left out when
  /// there are no more microbatches, so that orders made for many microbatches
  /// serve few.
  void add(ActionKind kind, int repeat) {
    int microbatch = countOf(kind, repeat)++;
    if (microbatch < shape.microbatches)
      row.push_back({shape.chunkOf(rank, repeat), kind, microbatch});
  }

  /// Input gradient and weight gradient, one after the other.
  void addBackward(int repeat) {
    add(ActionKind::BackwardInput, repeat);
    add(ActionKind::BackwardWeight, repeat);
  }

  /// F of one row, and as its pair the input gradient of the other row, after
  /// which its weight gradient follows.
  void addPair(int forward, int backward) {
    size_t before = row.size();
    add(ActionKind::Forward, forward);
    add(ActionKind::BackwardInput, backward);
    if (row.size() == before + 2)
      row[before].startsPair = true;
    add(ActionKind::BackwardWeight, backward);
  }

  /// The number of actions added so far.
  int count(ActionKind kind, int repeat) { return countOf(kind, repeat); }

  std::vector<Action> take() { return std::move(row); }

private:
  const Shape &shape;
  int rank;
  std::vector<int> counts; // by kind and row of chunks
  std::vector<Action> row;

  int &countOf(ActionKind kind, int repeat) {
    return counts[static_cast<int>(kind) * shape.repeats + repeat];
  }
};

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SCHEDULES_ROWWRITER_H
