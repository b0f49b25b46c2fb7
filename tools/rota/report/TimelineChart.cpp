// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/report/TimelineChart.h"

#include "tools/rota/report/Svg.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <fmt/format.h>

namespace rota::report {

/// "F" of "0F3", "SEND_B" of "1SEND_B0".
std::string kindOf(const std::string &name) {
  std::string kind;
  for (char c : name)
    if (!std::isdigit(static_cast<unsigned char>(c)))
      kind += c;
  return kind;
}

namespace {

/// The style of an action: its kind, lighter and darker by turns of its chunk.
std::string styleOf(const Slice &slice) {
  if (!slice.isCompute)
    return "transfer";
  int chunk = 0;
  for (char c : slice.name) {
    if (!std::isdigit(static_cast<unsigned char>(c)))
      break;
    chunk = (10 * chunk + (c - '0')) % 1000;
  }
  return fmt::format("k{} c{}", kindOf(slice.name), chunk % 3);
}

/// The last part of a name: "12" of "3F12".
std::string microbatchOf(const std::string &name) {
  return name.substr(name.find_last_not_of("0123456789") + 1);
}

/// The picture of rows.
class TimelineDrawing {
public:
  TimelineDrawing(const std::vector<TimelineRow> &rows, double width)
      : rows(rows), width(width),
        drawing(width,
                kTop + kBottom + kRow * static_cast<double>(rows.size())) {
    low = 1e300;
    for (const TimelineRow &row : rows)
      for (const Slice &slice : row.slices) {
        low = std::min(low, slice.begin);
        high = std::max(high, slice.end);
      }
  }

  std::string draw() {
    if (!(high > low))
      return "";
    double bottom = kTop + kRow * static_cast<double>(rows.size());
    int ticks = static_cast<int>(8 * width / kWidth);
    for (double tick : roundTicks(0, high - low, ticks)) {
      drawing.addLine(xOf(low + tick), kTop - 4, xOf(low + tick), bottom,
                      "grid");
      drawing.addText(xOf(low + tick), bottom + 16,
                      tick == 0 ? "0" : secondsText(tick), "middle", "tick");
    }
    for (size_t i = 0; i < rows.size(); ++i)
      drawRow(rows[i], kTop + kRow * static_cast<double>(i));
    return drawing.finish("Timeline of a step", width > kWidth ? width : 0);
  }

  static constexpr double kWidth = 1150;

private:
  static constexpr double kLeft = 108, kRight = 30, kTop = 8, kBottom = 26,
                          kRow = 34, kBox = 19, kThin = 6;

  static bool isFaint(const TimelineRow &row) {
    return row.source == "planned";
  }

  double xOf(double time) const {
    return kLeft + (time - low) / (high - low) * (width - kLeft - kRight);
  }

  void drawRow(const TimelineRow &row, double y) {
    drawing.addText(4, y + 14, row.label, "start", "tick");
    drawing.addText(kLeft - 8, y + 14, row.source, "end",
                    isFaint(row) ? "tick faint" : "tick");
    for (const Slice &slice : row.slices)
      drawSlice(row, slice, y);
  }

  void drawSlice(const TimelineRow &row, const Slice &slice, double y) {
    double x = xOf(slice.begin), box = std::max(0.5, xOf(slice.end) - x);
    std::string tip = fmt::format(
        "{}{}{}{}: {} from {}", row.source, row.source.empty() ? "" : " ",
        slice.name, slice.last.empty() ? "" : " to " + slice.last,
        secondsText(slice.end - slice.begin), secondsText(slice.begin - low));
    std::string style = styleOf(slice) + (isFaint(row) ? " planned" : "");
    if (!slice.isCompute) {
      drawing.addRectangle(x, y + kBox + 2, box, kThin, style, tip);
      return;
    }
    if (slice.endsPair) { // in the lower half of the row
      drawing.addRectangle(x, y + kBox / 2, box, kBox / 2, style, tip);
      return;
    }
    drawing.addRectangle(x, y, box, kBox, style, tip);
    if (!slice.last.empty())
      return;
    for (const std::string &label : {slice.name, microbatchOf(slice.name)})
      if (!label.empty() && box > 7.0 * static_cast<double>(label.size())) {
        drawing.addText(x + box / 2, y + 14, label, "middle", "box");
        break;
      }
  }

  const std::vector<TimelineRow> &rows;
  double width;
  SvgDrawing drawing;
  double low, high = -1e300;
};

/// Pictures of more rows than these are too high, those of more boxes too
/// large for browsers.
constexpr size_t kMostRows = 64, kMostSlices = 12000, kMostBoxes = 24000;

/// Drops the last rows until the rest is small enough.
std::string shorten(std::vector<TimelineRow> &rows, size_t mostSlices) {
  size_t kept = 0, slices = 0;
  for (; kept < rows.size() && kept < kMostRows; ++kept) {
    slices += rows[kept].slices.size();
    if (slices > mostSlices && kept > 0)
      break;
  }
  if (kept == rows.size())
    return "";
  std::string note =
      fmt::format("<p>The first {} of {} rows.</p>\n", kept, rows.size());
  rows.resize(kept);
  return note;
}

std::string inFrame(const std::string &picture) {
  return picture.empty() ? "" : "<div class=\"wide\">" + picture + "</div>\n";
}

/// Joins neighbours of one style that are closer than `gap` seconds.
std::vector<Slice> joined(const std::vector<Slice> &slices, double gap) {
  std::vector<Slice> runs;
  // The last run of computation, of second halves of pairs and of transfers.
  std::array<int, 3> last = {-1, -1, -1};
  for (const Slice &slice : slices) {
    int &number = last[!slice.isCompute ? 2 : slice.endsPair ? 1 : 0];
    if (number >= 0) {
      Slice &run = runs[number];
      if (styleOf(run) == styleOf(slice) && slice.begin - run.end <= gap &&
          slice.begin >= run.begin) {
        run.last = slice.name;
        run.end = std::max(run.end, slice.end);
        continue;
      }
    }
    number = static_cast<int>(runs.size());
    runs.push_back(slice);
  }
  return runs;
}

struct TimelineSize {
  double seconds = 0; // of all rows
  size_t slices = 0, boxes = 0;
  double box = 0; // seconds that one of ten boxes is shorter than
};

TimelineSize sizeOf(const std::vector<TimelineRow> &rows) {
  TimelineSize size;
  double first = 1e300, last = 0;
  std::vector<double> lengths;
  for (const TimelineRow &row : rows) {
    size.slices += row.slices.size();
    for (const Slice &slice : row.slices) {
      first = std::min(first, slice.begin);
      last = std::max(last, slice.end);
      if (slice.isCompute)
        lengths.push_back(slice.end - slice.begin);
    }
  }
  size.seconds = std::max(0.0, last - first);
  size.boxes = lengths.size();
  if (!lengths.empty()) {
    auto tenth = lengths.begin() + static_cast<int64_t>(lengths.size() / 10);
    std::nth_element(lengths.begin(), tenth, lengths.end());
    size.box = *tenth;
  }
  return size;
}

std::vector<TimelineRow> joined(const std::vector<TimelineRow> &rows,
                                double gap, bool boxesToo) {
  std::vector<TimelineRow> result = rows;
  for (TimelineRow &row : result) {
    std::vector<Slice> boxes, transfers;
    for (Slice &slice : row.slices)
      (slice.isCompute ? boxes : transfers).push_back(std::move(slice));
    std::stable_sort(
        transfers.begin(), transfers.end(),
        [](const auto &a, const auto &b) { return a.begin < b.begin; });
    row.slices = boxesToo ? joined(boxes, gap) : std::move(boxes);
    for (Slice &run : joined(transfers, gap))
      row.slices.push_back(std::move(run));
  }
  return result;
}

} // namespace

std::string timelineChart(std::vector<TimelineRow> rows) {
  std::string note = shorten(rows, kMostSlices);
  std::string picture =
      inFrame(TimelineDrawing(rows, TimelineDrawing::kWidth).draw());
  return picture.empty() ? "" : picture + note;
}

std::string largeTimelineChart(std::vector<TimelineRow> rows) {
  constexpr double kReadable = 24, kMostWidth = 24000; // pixels
  std::string note = shorten(rows, SIZE_MAX);
  TimelineSize size = sizeOf(rows);
  if (!(size.seconds > 0))
    return "";
  double pixels = size.box / size.seconds * TimelineDrawing::kWidth;
  if (pixels >= kReadable / 2 && size.slices <= kMostSlices)
    return timelineChart(std::move(rows)) + note;
  double pixel = size.seconds / TimelineDrawing::kWidth;
  std::string html = inFrame(
      TimelineDrawing(joined(rows, pixel / 2, true), TimelineDrawing::kWidth)
          .draw());
  if (size.boxes > kMostBoxes)
    return html + note;
  double width =
      std::min(TimelineDrawing::kWidth * kReadable / pixels, kMostWidth);
  double wide = size.seconds / width;
  return html + note +
         "<details open><summary>All actions, to scroll</summary>\n" +
         inFrame(TimelineDrawing(joined(rows, wide / 2, false), width).draw()) +
         "</details>\n";
}

std::string timelineLegend() {
  return "<span class=\"key kF\">F</span> forward "
         "<span class=\"key kB\">B</span> backward "
         "<span class=\"key kI\">I</span> input gradient "
         "<span class=\"key kW\">W</span> weight gradient "
         "<span class=\"key transfer\">&nbsp;</span> transfers and messages";
}

} // namespace rota::report
