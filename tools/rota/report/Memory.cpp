// SPDX-License-Identifier: Apache-2.0
//
// Memory by rank and use, as stacked bars.
#include "tools/rota/report/MemoryBars.h"
#include "tools/rota/report/Svg.h"
#include "tools/rota/report/Tables.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota::report {

namespace {

/// Uses with a colour of their own; others share the last one.
constexpr size_t kColours = 10;
constexpr size_t kMostBars = 64; // a picture of more is too high

class MemoryChart {
public:
  explicit MemoryChart(std::vector<MemoryBar> given)
      : bars(std::move(given)),
        drawing(kWidth, kTop + kBottom + kRow * double(bars.size())) {
    for (const MemoryBar &bar : bars) {
      double total = 0;
      for (const auto &[use, bytes] : member(*bar.stage, "uses").items())
        if (bytes.is_number() && bytes.get<double>() > 0) {
          total += bytes.get<double>();
          if (std::find(uses.begin(), uses.end(), use) == uses.end())
            uses.push_back(use);
        }
      most = std::max(most, total);
    }
  }

  std::string draw() {
    if (!(most > 0))
      return "";
    double bottom = kTop + kRow * double(bars.size());
    for (double tick : byteTicks(most, 6)) {
      drawing.addLine(xOf(tick), kTop - 4, xOf(tick), bottom, "grid");
      drawing.addText(xOf(tick), bottom + 16, byteText(tick), "middle", "tick");
    }
    for (size_t i = 0; i < bars.size(); ++i)
      drawBar(bars[i], kTop + kRow * double(i));
    return drawing.finish("Memory by rank and use") + legend();
  }

private:
  static constexpr double kWidth = 1150, kLeft = 108, kRight = 40, kTop = 8,
                          kBottom = 26, kRow = 28, kBox = 18;

  double xOf(double bytes) const {
    return kLeft + bytes / most * (kWidth - kLeft - kRight);
  }

  std::string styleOf(const std::string &use) const {
    size_t number = std::find(uses.begin(), uses.end(), use) - uses.begin();
    return fmt::format("u{}", std::min(number, kColours - 1));
  }

  void drawBar(const MemoryBar &bar, double y) {
    drawing.addText(4, y + 13, bar.label, "start", "tick");
    double from = 0;
    for (const auto &[use, bytes] : member(*bar.stage, "uses").items()) {
      if (!bytes.is_number() || !(bytes.get<double>() > 0))
        continue;
      double to = from + bytes.get<double>();
      drawing.addRectangle(
          xOf(from), y, std::max(0.5, xOf(to) - xOf(from) - 0.5), kBox,
          "fill " + styleOf(use),
          fmt::format("{}: {}: {}", bar.label, use, byteText(to - from)));
      from = to;
    }
    if (bar.reached)
      drawing.addLine(xOf(*bar.reached), y - 2, xOf(*bar.reached), y + kBox + 2,
                      "mark");
  }

  std::string legend() const {
    std::string html = "<p>";
    for (const std::string &use : uses)
      html += fmt::format("<span class=\"item\"><span class=\"key {}\">&nbsp;"
                          "</span> {}</span> ",
                          styleOf(use), escaped(use));
    return html + "</p>\n";
  }

  std::vector<MemoryBar> bars;
  SvgDrawing drawing;
  std::vector<std::string> uses; // in the order of their first appearance
  double most = 0;
};

/// The stage of a rank: the mesh numbers ranks row-major.
int64_t stageOf(const Json &mesh, int64_t rank) {
  int64_t stride = 1, size = 1;
  bool found = false;
  if (mesh.is_object())
    for (const auto &[axis, count] : mesh.items()) {
      int64_t ranks = count.is_number_integer() ? count.get<int64_t>() : 1;
      ranks = std::clamp<int64_t>(ranks, 1, 1 << 20);
      if (found)
        stride = std::min<int64_t>(stride * ranks, 1 << 20);
      if (axis == "stage") {
        found = true;
        size = ranks;
      }
    }
  return rank / stride % size;
}

std::vector<MemoryBar> barsOf(const RunFolder &folder) {
  std::vector<MemoryBar> bars;
  const Json &stages = member(folder.run, "stages");
  if (!stages.is_array())
    return bars;
  double count = number(folder.run, "ranks").value_or(0);
  const Json &reports = member(folder.summary, "ranks");
  if (!(count >= 1 && count <= double(kMostBars)))
    return barsOfStages(stages);
  for (int64_t r = 0; r < static_cast<int64_t>(count); ++r) {
    auto stage = static_cast<size_t>(stageOf(member(folder.run, "mesh"), r));
    if (stage >= stages.size())
      continue;
    MemoryBar bar{fmt::format("rank {}", r), &stages[stage], std::nullopt};
    if (reports.is_array() && static_cast<size_t>(r) < reports.size())
      bar.reached = number(reports[static_cast<size_t>(r)], "reached_bytes");
    bars.push_back(bar);
  }
  return bars;
}

} // namespace

std::vector<MemoryBar> barsOfStages(const Json &stages) {
  std::vector<MemoryBar> bars;
  for (size_t s = 0; s < stages.size(); ++s)
    bars.push_back({fmt::format("stage {}", s), &stages[s], std::nullopt});
  return bars;
}

std::string memoryBars(std::vector<MemoryBar> bars) {
  std::string note;
  if (bars.size() > kMostBars) {
    note = fmt::format("<p>The first {} of {} rows.</p>\n", kMostBars,
                       bars.size());
    bars.resize(kMostBars);
  }
  std::string picture = MemoryChart(std::move(bars)).draw();
  return picture.empty() ? ""
                         : "<div class=\"wide\">" + picture + "</div>\n" + note;
}

std::string memorySection(const RunFolder &folder) {
  std::vector<MemoryBar> bars = barsOf(folder);
  bool hasMarks = std::ranges::any_of(
      bars, [](const MemoryBar &bar) { return bar.reached.has_value(); });
  std::string picture = memoryBars(std::move(bars));
  if (picture.empty())
    return "";
  return std::string("<h2>Memory</h2>\n<p>Planned bytes of each rank by use") +
         (hasMarks ? "; the mark is the highest byte that was written" : "") +
         ".</p>\n" + picture;
}

} // namespace rota::report
