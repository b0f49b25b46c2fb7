// SPDX-License-Identifier: Apache-2.0
//
// The memory of a plan: over time as stacked areas, and by stage as bars.
#include "tools/rota/report/MemoryBars.h"
#include "tools/rota/report/PlanPage.h"
#include "tools/rota/report/Svg.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <numeric>

namespace rota::report {

namespace {

constexpr size_t kMostLayers = 9; // uses with a colour of their own

/// A use that is drawn, or several small ones.
struct Layer {
  std::string name;
  std::vector<size_t> uses; // in the curve
  int64_t atPeak = 0;       // bytes
};

class MemoryAreas {
public:
  MemoryAreas(const MemoryCurve &curve, std::optional<int64_t> device,
              double arena)
      : curve(curve), device(device), arena(arena), drawing(kWidth, kHeight) {
    if (curve.samples.empty())
      return;
    end = curve.samples.back().seconds;
    most = 1.06 * std::max(arena, double(peak().total));
    if (device && double(*device) < 2.5 * most)
      most = std::max(most, 1.06 * double(*device));
    chooseLayers();
    chooseColumns();
  }

  std::string draw() {
    if (!(end > 0) || !(most > 0))
      return "";
    drawAxes();
    std::vector<double> floor(columns.size(), 0);
    for (size_t i = 0; i < layers.size(); ++i)
      drawLayer(layers[i], styleOf(i), floor);
    drawLevels();
    double x = xOf(peak().seconds), y = yOf(double(peak().total));
    drawing.addCircle(x, y, 4, "fill s2 best", peakText());
    return drawing.finish("Memory of a rank over the step") + legend();
  }

  std::string peakText() const {
    return fmt::format("peak of {} at {}", byteText(double(peak().total)),
                       secondsText(peak().seconds));
  }

private:
  static constexpr double kWidth = 1150, kHeight = 380, kLeft = 80, kRight = 24,
                          kTop = 18, kBottom = 30;
  static constexpr size_t kColumns = 520;

  const MemoryCurve::Sample &peak() const { return curve.samples[curve.peak]; }

  double xOf(double seconds) const {
    return kLeft + seconds / end * (kWidth - kLeft - kRight);
  }
  double yOf(double bytes) const {
    return kHeight - kBottom - bytes / most * (kHeight - kTop - kBottom);
  }
  static std::string styleOf(size_t layer) {
    return fmt::format("u{}", std::min(layer, kMostLayers));
  }

  /// The largest uses in the order of the curve, then all others as one.
  void chooseLayers() {
    std::vector<int64_t> largest(curve.uses.size(), 0);
    for (const MemoryCurve::Sample &sample : curve.samples)
      for (size_t use = 0; use < largest.size(); ++use)
        largest[use] = std::max(largest[use], sample.bytes[use]);
    std::vector<size_t> order(largest.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return largest[a] > largest[b];
    });
    order.resize(std::min(order.size(), kMostLayers));
    Layer others{"others", {}, 0};
    for (size_t use = 0; use < largest.size(); ++use) {
      bool isLarge = std::find(order.begin(), order.end(), use) != order.end();
      if (isLarge && double(largest[use]) >= 0.004 * most)
        layers.push_back({curve.uses[use], {use}, peak().bytes[use]});
      else if (largest[use] > 0) {
        others.uses.push_back(use);
        others.atPeak += peak().bytes[use];
      }
    }
    if (!others.uses.empty())
      layers.push_back(others);
  }

  /// For each column of the picture the sample with the most bytes in it, one
  /// that began before included.
  void chooseColumns() {
    columns.assign(kColumns, &curve.samples.front());
    size_t next = 0;
    const MemoryCurve::Sample *current = &curve.samples.front();
    for (size_t i = 0; i < kColumns; ++i) {
      double until = end * double(i + 1) / kColumns;
      const MemoryCurve::Sample *fullest = current;
      for (; next < curve.samples.size() &&
             (curve.samples[next].seconds < until || i + 1 == kColumns);
           ++next) {
        current = &curve.samples[next];
        if (current->total > fullest->total)
          fullest = current;
      }
      columns[i] = fullest;
    }
  }

  void drawAxes() {
    for (double tick : byteTicks(most, 6)) {
      drawing.addLine(kLeft, yOf(tick), kWidth - kRight, yOf(tick), "grid");
      drawing.addText(kLeft - 6, yOf(tick) + 4, byteText(tick), "end", "tick");
    }
    for (double tick : roundTicks(0, end, 8))
      drawing.addText(xOf(tick), kHeight - kBottom + 18,
                      tick == 0 ? "0" : secondsText(tick), "middle", "tick");
  }

  /// Adds the layer on `floor`, bytes by column.
  void drawLayer(const Layer &layer, const std::string &style,
                 std::vector<double> &floor) {
    std::vector<std::pair<double, double>> below, points;
    for (size_t i = 0; i < columns.size(); ++i) {
      double left = xOf(end * double(i) / kColumns);
      double right = xOf(end * double(i + 1) / kColumns);
      double bytes = 0;
      for (size_t use : layer.uses)
        bytes += double(columns[i]->bytes[use]);
      addStep(below, left, right, yOf(floor[i]));
      floor[i] += bytes;
      addStep(points, left, right, yOf(floor[i]));
    }
    points.insert(points.end(), below.rbegin(), below.rend());
    drawing.addArea(points, "fill " + style,
                    fmt::format("{}: {} at the peak", layer.name,
                                byteText(double(layer.atPeak))));
  }

  /// Extends a level by a column; corners stand where it changes.
  static void addStep(std::vector<std::pair<double, double>> &line, double left,
                      double right, double y) {
    if (line.size() > 1 && line.back().second == y) {
      line.back().first = right;
      return;
    }
    line.emplace_back(left, y);
    line.emplace_back(right, y);
  }

  /// The arena and the memory of a device. Their names stand at both ends, and
  /// that of the arena below its line where the two are close.
  void drawLevels() {
    double y = yOf(arena), nameAt = y - 5;
    drawing.addLine(kLeft, y, kWidth - kRight, y, "arena");
    if (device && double(*device) <= most) {
      double above = yOf(double(*device));
      drawing.addLine(kLeft, above, kWidth - kRight, above, "device");
      drawing.addText(kLeft + 2, above - 5,
                      "memory " + byteText(double(*device)), "start", "warn");
      if (y - above < 18)
        nameAt = y + 13;
    }
    drawing.addText(kWidth - kRight - 2, nameAt, "arena " + byteText(arena),
                    "end", "tick");
  }

  std::string legend() const {
    std::string html = "<p>";
    for (size_t i = layers.size(); i-- > 0;)
      html += fmt::format("<span class=\"item\"><span class=\"key {}\">&nbsp;"
                          "</span> {} {}</span> ",
                          styleOf(i), escaped(layers[i].name),
                          escaped(byteText(double(layers[i].atPeak))));
    return html + "</p>\n";
  }

  const MemoryCurve &curve;
  std::optional<int64_t> device;
  double arena; // bytes of the rank's device that the plan takes
  SvgDrawing drawing;
  std::vector<Layer> layers;
  std::vector<const MemoryCurve::Sample *> columns;
  double end = 0, most = 0;
};

} // namespace

std::string planMemorySection(const PlanPage &page) {
  const Json &stages = member(page.plan, "stages");
  std::string path = fmt::format("stages.{}.bytes", page.stage);
  double arena = page.stage < stages.size()
                     ? number(stages[page.stage], "bytes").value_or(0)
                     : 0;
  MemoryAreas areas(page.curve, page.deviceBytes, arena);
  std::string picture = areas.draw();
  if (picture.empty())
    return "";
  std::string device =
      page.deviceBytes
          ? fmt::format(" of {}", byteText(double(*page.deviceBytes)))
          : "";
  return fmt::format(
      "<h2>Memory</h2>\n<p>A rank of stage {}, which needs most: an arena of "
      "{}{}, with a {}. The arena has a section for windows and one for "
      "activations, each as large as it gets, with gaps between "
      "blocks.</p>\n<div class=\"wide\">{}</div>\n<p>Arena of each stage's "
      "ranks by use.</p>\n{}",
      page.stage, dataOf(page.plan, path, byteText), device,
      escaped(areas.peakText()), picture, memoryBars(barsOfStages(stages)));
}

} // namespace rota::report
