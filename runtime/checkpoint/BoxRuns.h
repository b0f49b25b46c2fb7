// SPDX-License-Identifier: Apache-2.0
//
// The elements that two boxes of one tensor have in common, as runs that can be
// copied. Whoever wrote a checkpoint divided its tensors in another way than
// the rank that reads it.
#ifndef ROTA_RUNTIME_CHECKPOINT_BOXRUNS_H
#define ROTA_RUNTIME_CHECKPOINT_BOXRUNS_H

#include "runtime/checkpoint/Manifest.h"
#include "runtime/program/Part.h"

#include <optional>

namespace rota {

/// A box of a row-major tensor: in dimension d the elements [begin[d], begin[d]
/// + size[d]), in memory with room for room[d] >= size[d].
struct Box {
  std::vector<int64_t> begin, size, room;
};

/// A piece has no padding; a part may have.
Box boxOf(const SavedPiece &piece);
Box boxOf(const Part &part);
/// All elements of a tensor.
Box wholeBox(const std::vector<int64_t> &shape);

/// The intersection of two boxes of one tensor as runs of elements that lie
/// side by side in the memory of both, in row-major order: ascending in both.
class BoxRuns {
public:
  /// The boxes have the same number of dimensions.
  BoxRuns(const Box &source, const Box &target);

  /// Numbers of elements in the boxes' memory.
  struct Run {
    int64_t source = 0, target = 0, count = 0;
  };
  /// The next run; none after the last.
  std::optional<Run> next();

private:
  /// The outer dimensions of the runs; the last one is inside of a run.
  struct Dimension {
    int64_t size = 1, sourceStride = 0, targetStride = 0;
    int64_t index = 0;
  };
  bool done = false;
  Run run;
  std::vector<Dimension> outer;
};

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_BOXRUNS_H
