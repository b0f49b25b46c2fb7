// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/report/Timeline.h"

#include "runtime/program/Action.h"
#include "tools/rota/report/Svg.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace rota::report {

namespace {

struct Slice {
  std::string name;          // "0F3"
  double begin = 0, end = 0; // seconds
  bool isCompute = true;
  bool endsPair = false; // the second half of a pair, beside the first
};

/// One line of the drawing.
struct Row {
  std::string label;
  bool isPlanned = false;
  std::vector<Slice> slices;
};

/// "F" of "0F3", "SEND_B" of "1SEND_B0".
std::string kindOf(const std::string &name) {
  std::string kind;
  for (char c : name)
    if (!std::isdigit(static_cast<unsigned char>(c)))
      kind += c;
  return kind;
}

bool isComputeName(const std::string &name) {
  std::string kind = kindOf(name);
  for (int k = 0; k < kActionKindCount; ++k)
    if (kind == toString(ActionKind(k)))
      return isCompute(ActionKind(k));
  return false;
}

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

/// The rows of the last training step of a trace.
class TraceReader {
public:
  explicit TraceReader(const Json &events) : events(events) {
    for (const Json &event : events)
      if (text(event, "name") == "thread_name")
        if (auto lane = number(event, "tid"))
          names[*lane] = text(member(event, "args"), "name");
  }

  std::vector<Row> read() {
    findRun();
    for (const Json &event : events)
      add(event);
    std::vector<Row> result;
    for (auto &[key, row] : rows)
      result.push_back(std::move(row));
    return result;
  }

private:
  static bool isOfStep(const Json &event) {
    std::string category = text(event, "cat");
    return category == "training" || category == "planned";
  }

  void findRun() {
    for (const Json &event : events)
      if (isOfStep(event))
        run = std::max(run, number(member(event, "args"), "run").value_or(-1));
  }

  void add(const Json &event) {
    auto begin = number(event, "ts"), length = number(event, "dur");
    auto lane = number(event, "tid");
    if (!isOfStep(event) || !begin || !length || !lane ||
        number(member(event, "args"), "run") != run)
      return;
    std::string title = names[*lane];
    int rank = 0;
    for (char c : title.substr(std::min<size_t>(5, title.size()))) {
      if (!std::isdigit(static_cast<unsigned char>(c)))
        break;
      rank = 10 * rank + (c - '0');
    }
    bool isPlanned = text(event, "cat") == "planned";
    Row &row = rows[{rank, isPlanned}];
    row.label = fmt::format("rank {}", rank);
    row.isPlanned = isPlanned;
    std::string name = text(event, "name");
    row.slices.push_back({name, *begin * 1e-6, (*begin + *length) * 1e-6,
                          isComputeName(name), title.ends_with(" pair")});
  }

  const Json &events;
  std::map<double, std::string> names; // names of lanes
  std::map<std::pair<int, bool>, Row> rows;
  double run = -1;
};

/// The planned times of run.json.
std::vector<Row> plannedRows(const Json &run) {
  std::vector<Row> rows;
  for (const Json &stage : member(run, "stages")) {
    Row row{fmt::format("stage {}", rows.size()), true, {}};
    for (const Json &action : member(stage, "planned"))
      if (action.is_array() && action.size() == 4 && action[0].is_string() &&
          action[2].is_number() && action[3].is_number()) {
        std::string name = action[0].get<std::string>();
        row.slices.push_back({name, action[2].get<double>(),
                              action[3].get<double>(), isComputeName(name)});
      }
    rows.push_back(std::move(row));
  }
  return rows;
}

class TimelineChart {
public:
  explicit TimelineChart(std::vector<Row> given)
      : rows(std::move(given)),
        drawing(kWidth,
                kTop + kBottom + kRow * static_cast<double>(rows.size())) {
    low = 1e300;
    for (const Row &row : rows)
      for (const Slice &slice : row.slices) {
        low = std::min(low, slice.begin);
        high = std::max(high, slice.end);
      }
  }

  std::string draw() {
    if (!(high > low))
      return "";
    double bottom = kTop + kRow * static_cast<double>(rows.size());
    for (double tick : roundTicks(0, high - low, 8)) {
      drawing.addLine(xOf(low + tick), kTop - 4, xOf(low + tick), bottom,
                      "grid");
      drawing.addText(xOf(low + tick), bottom + 16,
                      tick == 0 ? "0" : secondsText(tick), "middle", "tick");
    }
    for (size_t i = 0; i < rows.size(); ++i)
      drawRow(rows[i], kTop + kRow * static_cast<double>(i));
    return drawing.finish("Timeline of a step");
  }

private:
  static constexpr double kWidth = 1150, kLeft = 108, kRight = 30, kTop = 8,
                          kBottom = 26, kRow = 34, kBox = 19, kThin = 6;

  double xOf(double time) const {
    return kLeft + (time - low) / (high - low) * (kWidth - kLeft - kRight);
  }

  void drawRow(const Row &row, double y) {
    drawing.addText(4, y + 14, row.label, "start", "tick");
    drawing.addText(kLeft - 8, y + 14, row.isPlanned ? "planned" : "real",
                    "end", row.isPlanned ? "tick faint" : "tick");
    std::string faint = row.isPlanned ? " planned" : "";
    for (const Slice &slice : row.slices) {
      double x = xOf(slice.begin);
      double width = std::max(0.5, xOf(slice.end) - x);
      std::string tip = fmt::format(
          "{} {}: {} from {}", row.isPlanned ? "planned" : "real", slice.name,
          secondsText(slice.end - slice.begin), secondsText(slice.begin - low));
      if (!slice.isCompute) {
        drawing.addRectangle(x, y + kBox + 2, width, kThin,
                             styleOf(slice) + faint, tip);
        continue;
      }
      if (slice.endsPair) { // in the lower half of the row
        drawing.addRectangle(x, y + kBox / 2, width, kBox / 2,
                             styleOf(slice) + faint, tip);
        continue;
      }
      drawing.addRectangle(x, y, width, kBox, styleOf(slice) + faint, tip);
      if (width > 7.0 * static_cast<double>(slice.name.size()))
        drawing.addText(x + width / 2, y + 14, slice.name, "middle", "box");
    }
  }

  std::vector<Row> rows;
  SvgDrawing drawing;
  double low, high = -1e300;
};

/// Pictures of more rows than these are too high, those of more boxes too
/// large for browsers.
constexpr size_t kMostRows = 32, kMostSlices = 12000;

/// Drops the last rows until the rest is small enough.
std::string shorten(std::vector<Row> &rows) {
  size_t kept = 0, slices = 0;
  for (; kept < rows.size() && kept < kMostRows; ++kept) {
    slices += rows[kept].slices.size();
    if (slices > kMostSlices && kept > 0)
      break;
  }
  if (kept == rows.size())
    return "";
  std::string note =
      fmt::format("<p>The first {} of {} rows.</p>\n", kept, rows.size());
  rows.resize(kept);
  return note;
}

} // namespace

std::string timelineSection(const RunFolder &folder) {
  std::vector<Row> rows;
  if (folder.trace.is_array())
    rows = TraceReader(folder.trace).read();
  bool isReal = !rows.empty();
  if (!isReal)
    rows = plannedRows(folder.run);
  std::string note = shorten(rows);
  std::string picture = TimelineChart(std::move(rows)).draw();
  if (picture.empty())
    return "";
  std::string legend =
      "<span class=\"key kF\">F</span> forward "
      "<span class=\"key kB\">B</span> backward "
      "<span class=\"key kI\">I</span> input gradient "
      "<span class=\"key kW\">W</span> weight gradient "
      "<span class=\"key transfer\">&nbsp;</span> transfers and messages";
  const char *meaning =
      isReal ? "The last traced step. Planned times are those of the machine "
               "that the compiler assumes, scaled so that the ranks compute "
               "as long as they really did."
             : "No trace: the planned times on the machine that the compiler "
               "assumes.";
  return fmt::format(
      "<h2>Timeline</h2>\n<p>{} <span class=\"faint\">3B1 is the "
      "backward pass of chunk 3 on microbatch 1.</span></p>\n"
      "<p>{}</p>\n<div class=\"wide\">{}</div>\n{}",
      meaning, legend, picture, note);
}

} // namespace rota::report
