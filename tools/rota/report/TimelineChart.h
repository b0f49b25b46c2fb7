// SPDX-License-Identifier: Apache-2.0
//
// Rows of actions over time.
#ifndef ROTA_TOOLS_ROTA_REPORT_TIMELINECHART_H
#define ROTA_TOOLS_ROTA_REPORT_TIMELINECHART_H

#include <string>
#include <vector>

namespace rota::report {

struct Slice {
  std::string name;          // "0F3"
  double begin = 0, end = 0; // seconds
  bool isCompute = true;
  bool endsPair = false; // the second half of a pair, beside the first
  std::string last;      // last name of a run of actions; empty: there is one
};

/// One line of the drawing.
struct TimelineRow {
  std::string label;
  /// "real", or "planned", which is drawn faint; empty: all rows are the same.
  std::string source;
  std::vector<Slice> slices;
};

/// "F" of "0F3", "SEND_B" of "1SEND_B0".
std::string kindOf(const std::string &name);

/// A box for each action, with its times as a tip, in as many of the first rows
/// as a browser takes; a note names what is left out. HTML; empty where no
/// action takes time.
std::string timelineChart(std::vector<TimelineRow> rows);

/// The same for any number of actions, of which the first 32 rows are drawn.
/// Where the boxes would be too narrow to read, the picture has runs of equal
/// actions, and a second one below it, which scrolls, has them all.
std::string largeTimelineChart(std::vector<TimelineRow> rows);

/// The meaning of the colours, as HTML.
std::string timelineLegend();

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_TIMELINECHART_H
