// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/report/Svg.h"

#include "runtime/text/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <limits>

namespace rota::report {

std::string shortNumber(double value) {
  double size = std::abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4))
    return fmt::format("{:.3g}", value);
  for (auto [unit, letter] :
       {std::pair(1e12, "T"), std::pair(1e9, "G"), std::pair(1e6, "M")})
    if (size >= unit)
      return fmt::format("{:.4g}{}", value / unit, letter);
  if (size >= 1000)
    return grouped(std::llround(value));
  return fmt::format("{:.4g}", value);
}

std::string byteText(double bytes) {
  constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit)
    bytes /= 1024;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 100 ? 0 : 1,
                     units[unit]);
}

std::string secondsText(double seconds) {
  constexpr double kHour = 3600, kDay = 24 * kHour;
  if (seconds >= 2 * kDay)
    return seconds < 1e6 * kDay ? fmt::format("{:.1f} days", seconds / kDay)
                                : fmt::format("{:.3g} days", seconds / kDay);
  if (seconds >= 2 * kHour)
    return fmt::format("{:.1f} h", seconds / kHour);
  if (seconds >= 120)
    return fmt::format("{:.1f} min", seconds / 60);
  // What rounds to a thousand is one of the next unit.
  constexpr double kRounded = 0.9995;
  if (seconds >= kRounded)
    return fmt::format("{:.3g} s", seconds);
  if (seconds >= kRounded * 1e-3)
    return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} \u00b5s", seconds * 1e6);
}

void SvgDrawing::addRectangle(double x, double y, double w, double h,
                              const std::string &style,
                              const std::string &tip) {
  body += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
      "class=\"{}\"",
      x, y, w, h, style);
  body +=
      tip.empty() ? "/>\n" : "><title>" + escaped(tip) + "</title></rect>\n";
}

void SvgDrawing::addLine(double x1, double y1, double x2, double y2,
                         const std::string &style) {
  body += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" "
                      "y2=\"{:.1f}\" class=\"{}\"/>\n",
                      x1, y1, x2, y2, style);
}

void SvgDrawing::addText(double x, double y, const std::string &text,
                         const std::string &anchor, const std::string &style) {
  body += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" "
                      "class=\"{}\">{}</text>\n",
                      x, y, anchor, style, escaped(text));
}

void SvgDrawing::addPath(const std::vector<std::pair<double, double>> &points,
                         const std::string &style) {
  body += "<path d=\"";
  for (size_t i = 0; i < points.size(); ++i)
    body += fmt::format("{}{:.1f} {:.1f}", i ? "L" : "M", points[i].first,
                        points[i].second);
  body += fmt::format("\" class=\"line {}\"/>\n", style);
}

void SvgDrawing::addArea(const std::vector<std::pair<double, double>> &points,
                         const std::string &style, const std::string &tip) {
  body += "<path d=\"";
  for (size_t i = 0; i < points.size(); ++i)
    body += fmt::format("{}{:.1f} {:.1f}", i ? "L" : "M", points[i].first,
                        points[i].second);
  body += fmt::format("Z\" class=\"{}\"><title>{}</title></path>\n", style,
                      escaped(tip));
}

void SvgDrawing::addCircle(double x, double y, double radius,
                           const std::string &style, const std::string &tip) {
  body += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" "
                      "class=\"{}\"><title>{}</title></circle>\n",
                      x, y, radius, style, escaped(tip));
}

std::string SvgDrawing::finish(const std::string &title,
                               double leastWidth) const {
  std::string style =
      leastWidth > 0 ? fmt::format(" style=\"min-width:{:.0f}px\"", leastWidth)
                     : "";
  return fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" "
                     "aria-label=\"{}\"{}>\n{}</svg>\n",
                     width, height, escaped(title), style, body);
}

std::vector<double> byteTicks(double most, int count) {
  double unit = 1;
  while (most / unit >= 1024)
    unit *= 1024;
  std::vector<double> ticks = roundTicks(0, most / unit, count);
  for (double &tick : ticks)
    tick *= unit;
  return ticks;
}

namespace {

class Chart {
public:
  Chart(const ChartText &text, const std::vector<Series> &series)
      : text(text), series(series), drawing(kWidth, kHeight) {}

  std::string draw() {
    findRange();
    if (!(xLow <= xHigh) || !(yLow <= yHigh))
      return "";
    drawAxes();
    drawLegend();
    for (const Series &line : series)
      drawSeries(line);
    return drawing.finish(text.title);
  }

private:
  static constexpr double kWidth = 560, kHeight = 250, kLeft = 62, kRight = 16,
                          kTop = 42, kBottom = 36;
  static constexpr size_t kMostPoints = 1500;

  void findRange() {
    for (const Series &line : series)
      for (auto [x, y] : line.points) {
        xLow = std::min(xLow, x);
        xHigh = std::max(xHigh, x);
        yLow = std::min(yLow, y);
        yHigh = std::max(yHigh, y);
      }
    if (text.isShare)
      yLow = std::min(yLow, 0.0);
    double size = std::max(std::abs(yLow), std::abs(yHigh));
    if (yHigh - yLow <= 1e-9 * size) { // a line, but for rounding
      double margin = size == 0 ? 1 : 0.1 * size;
      yLow -= text.isShare ? 0 : margin;
      yHigh += margin;
    }
    if (xLow == xHigh) { // one step, in the middle
      xLow -= 0.5;
      xHigh += 0.5;
    }
  }

  double xOf(double value) const {
    return kLeft + (value - xLow) / (xHigh - xLow) * (kWidth - kLeft - kRight);
  }
  double yOf(double value) const {
    return kHeight - kBottom -
           (value - yLow) / (yHigh - yLow) * (kHeight - kTop - kBottom);
  }
  std::string yText(double value) const {
    return text.isShare ? fmt::format("{:.4g} %", 100 * value)
                        : shortNumber(std::abs(value) < 1e-12 ? 0 : value);
  }

  void drawAxes() {
    for (double tick : roundTicks(yLow, yHigh, 5)) {
      drawing.addLine(kLeft, yOf(tick), kWidth - kRight, yOf(tick), "grid");
      drawing.addText(kLeft - 6, yOf(tick) + 4, yText(tick), "end", "tick");
    }
    for (double tick : roundTicks(xLow, xHigh, 7))
      if (tick == std::floor(tick))
        drawing.addText(xOf(tick), kHeight - kBottom + 16,
                        grouped(static_cast<int64_t>(tick)), "middle", "tick");
    drawing.addLine(kLeft, kHeight - kBottom, kWidth - kRight,
                    kHeight - kBottom, "axis");
    drawing.addText((kLeft + kWidth - kRight) / 2, kHeight - 4, "step",
                    "middle", "tick");
    std::string unit = text.unit.empty() ? "" : " (" + text.unit + ")";
    drawing.addText(4, 15, text.title + unit, "start", "title");
  }

  void drawLegend() {
    if (series.size() < 2)
      return;
    double x = kLeft;
    for (const Series &line : series) {
      if (line.points.empty())
        continue;
      drawing.addRectangle(x, 26, 12, 4, "fill " + line.style);
      drawing.addText(x + 17, 32, line.name, "start", "tick");
      x += 36 + 6.6 * static_cast<double>(line.name.size());
    }
  }

  void drawSeries(const Series &line) {
    std::vector<std::pair<double, double>> points;
    size_t stride = line.points.size() / kMostPoints + 1;
    for (size_t i = 0; i < line.points.size(); ++i)
      if (i % stride == 0 || i + 1 == line.points.size())
        points.emplace_back(xOf(line.points[i].first),
                            yOf(line.points[i].second));
    if (points.size() > 1)
      drawing.addPath(points, line.style);
    if (!line.hasMarks && points.size() > 1)
      return;
    for (auto [x, y] : line.points)
      drawing.addCircle(
          xOf(x), yOf(y), 3, "fill " + line.style,
          fmt::format("{}: {} at step {:.0f}", line.name, yText(y), x));
  }

  const ChartText &text;
  const std::vector<Series> &series;
  SvgDrawing drawing;
  double xLow = std::numeric_limits<double>::infinity(), xHigh = -xLow;
  double yLow = xLow, yHigh = -xLow;
};

} // namespace

std::string lineChart(const ChartText &text,
                      const std::vector<Series> &series) {
  return Chart(text, series).draw();
}

} // namespace rota::report
