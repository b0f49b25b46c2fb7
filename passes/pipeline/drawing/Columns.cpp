// SPDX-License-Identifier: Apache-2.0
//
// Lays actions out in columns; see Columns.h.
#include "passes/pipeline/drawing/Columns.h"

#include <algorithm>
#include <cmath>

namespace rota::pipe {

/// The time in which a rank's action is drawn: of the half of a pair, half of
/// the pair's.
static TimeSpan drawnSpan(const std::vector<Action> &row,
                          const std::vector<TimeSpan> &spans, size_t position) {
  TimeSpan span = spans[position];
  double middle = span.start + (span.end - span.start) / 2;
  if (row[position].startsPair)
    span.end = middle;
  if (endsPair(row, position))
    span.start = middle;
  return span;
}

Columns layOut(const Timeline &timeline, const Simulation &simulation) {
  // Very short actions beside very long ones would need too many columns.
  constexpr int kMostColumns = 1 << 16;
  double shortest = simulation.makespan;
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
      TimeSpan span =
          drawnSpan(timeline.ranks[rank], simulation.spans[rank], i);
      if (span.end > span.start)
        shortest = std::min(shortest, span.end - span.start);
    }
  Columns columns;
  columns.width = std::max(shortest, simulation.makespan / kMostColumns);
  // Starts are sums of costs; half a billionth covers their rounding.
  auto columnAt = [&](double time) {
    return columns.width > 0
               ? static_cast<int>(std::floor(time / columns.width + 5e-10))
               : 0;
  };
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    std::vector<Cell> &row = columns.ranks.emplace_back();
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
      const Action &action = timeline.ranks[rank][i];
      if (!isCompute(action.kind))
        continue;
      TimeSpan span =
          drawnSpan(timeline.ranks[rank], simulation.spans[rank], i);
      int first = columnAt(span.start);
      if (!row.empty())
        first = std::max(first, row.back().last + 1);
      int last = std::max(first, columnAt(span.end) - 1);
      row.push_back({action, first, last, i});
      columns.count = std::max(columns.count, last + 1);
    }
    std::vector<WaitCells> &waits = columns.waits.emplace_back();
    for (const Wait &wait : simulation.ranks[rank].waits)
      waits.push_back({columnAt(wait.span.start), columnAt(wait.span.end)});
  }
  return columns;
}

} // namespace rota::pipe
