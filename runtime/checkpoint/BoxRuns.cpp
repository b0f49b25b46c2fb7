// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/BoxRuns.h"

#include <algorithm>

namespace rota {

Box boxOf(const SavedPiece &piece) {
  return {piece.begin, piece.size, piece.size};
}

Box boxOf(const Part &part) { return {part.begin, part.valid, part.size}; }

Box wholeBox(const std::vector<int64_t> &shape) {
  return {std::vector<int64_t>(shape.size(), 0), shape, shape};
}

BoxRuns::BoxRuns(const Box &source, const Box &target) {
  run.count = 1;
  int64_t sourceStride = 1, targetStride = 1;
  bool isSideBySide = true; // all dimensions after this one are undivided
  for (size_t d = source.begin.size(); d-- > 0;) {
    int64_t begin = std::max(source.begin[d], target.begin[d]);
    int64_t end = std::min(source.begin[d] + source.size[d],
                           target.begin[d] + target.size[d]);
    if (begin >= end) {
      done = true;
      return;
    }
    run.source += (begin - source.begin[d]) * sourceStride;
    run.target += (begin - target.begin[d]) * targetStride;
    if (isSideBySide)
      run.count *= end - begin;
    else
      outer.push_back({end - begin, sourceStride, targetStride});
    isSideBySide &=
        end - begin == source.room[d] && end - begin == target.room[d];
    sourceStride *= source.room[d];
    targetStride *= target.room[d];
  }
}

std::optional<BoxRuns::Run> BoxRuns::next() {
  if (done)
    return std::nullopt;
  Run now = run;
  for (Dimension &dimension : outer) { // the innermost first
    run.source += dimension.sourceStride;
    run.target += dimension.targetStride;
    if (++dimension.index < dimension.size)
      return now;
    run.source -= dimension.size * dimension.sourceStride;
    run.target -= dimension.size * dimension.targetStride;
    dimension.index = 0;
  }
  done = true;
  return now;
}

} // namespace rota
