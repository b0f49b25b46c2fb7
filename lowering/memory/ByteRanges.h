// SPDX-License-Identifier: Apache-2.0
//
// Ranges of bytes that may overlap, for questions about many others.
#ifndef ROTA_LOWERING_MEMORY_BYTERANGES_H
#define ROTA_LOWERING_MEMORY_BYTERANGES_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace rota::memory {

class ByteRanges {
public:
  void clear() {
    ranges.clear();
    isSorted = false;
  }
  void add(int64_t begin, int64_t end) {
    ranges.push_back({begin, end});
    isSorted = false;
  }
  /// True when one of the ranges has a byte of [begin, end). The first question
  /// sorts; each takes the logarithm of the number of ranges.
  bool overlap(int64_t begin, int64_t end) {
    sort();
    auto after = std::lower_bound(
        ranges.begin(), ranges.end(), end,
        [](const Range &range, int64_t at) { return range.begin < at; });
    return after != ranges.begin() && std::prev(after)->end > begin;
  }

private:
  struct Range {
    int64_t begin, end; // once sorted, the largest end so far
  };

  void sort() {
    if (isSorted)
      return;
    std::sort(ranges.begin(), ranges.end(),
              [](const Range &a, const Range &b) { return a.begin < b.begin; });
    for (size_t i = 1; i < ranges.size(); ++i)
      ranges[i].end = std::max(ranges[i].end, ranges[i - 1].end);
    isSorted = true;
  }

  std::vector<Range> ranges;
  bool isSorted = false;
};

} // namespace rota::memory

#endif // ROTA_LOWERING_MEMORY_BYTERANGES_H
