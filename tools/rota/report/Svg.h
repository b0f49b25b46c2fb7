// SPDX-License-Identifier: Apache-2.0
//
// Drawings in SVG, inside of an HTML page whose style sheet has the colours.
#ifndef ROTA_TOOLS_ROTA_REPORT_SVG_H
#define ROTA_TOOLS_ROTA_REPORT_SVG_H

#include "passes/pipeline/drawing/Markup.h"

#include <string>
#include <utility>
#include <vector>

namespace rota::report {

/// "0.0003", "12,500", "1.2M": at most four digits.
std::string shortNumber(double value);
/// "1.5 GiB".
std::string byteText(double bytes);
/// "1.5 ms", "20.6 min", "191.3 days".
std::string secondsText(double seconds);

/// Elements of a drawing of a given size, in pixels from the left and the top.
class SvgDrawing {
public:
  SvgDrawing(double width, double height) : width(width), height(height) {}

  /// `style`: a class of the style sheet. A tip is shown under the pointer.
  void addRectangle(double x, double y, double width, double height,
                    const std::string &style, const std::string &tip = "");
  void addLine(double x1, double y1, double x2, double y2,
               const std::string &style);
  /// `anchor`: start, middle or end.
  void addText(double x, double y, const std::string &text,
               const std::string &anchor = "start",
               const std::string &style = "");
  void addPath(const std::vector<std::pair<double, double>> &points,
               const std::string &style);
  /// A closed area.
  void addArea(const std::vector<std::pair<double, double>> &points,
               const std::string &style, const std::string &tip);
  void addCircle(double x, double y, double radius, const std::string &style,
                 const std::string &tip);

  /// The svg element; `title` is for readers that do not see it. It is as wide
  /// as the page but at least `leastWidth` pixels.
  std::string finish(const std::string &title, double leastWidth = 0) const;

private:
  double width, height;
  std::string body;
};

/// Round numbers of bytes from 0 to `most`, at most `count` + 1, in the unit of
/// byteText.
std::vector<double> byteTicks(double most, int count);

/// A line of a chart.
struct Series {
  std::string name;
  std::string style; // "s1": class of its line and legend
  std::vector<std::pair<double, double>> points; // by ascending x
  bool hasMarks = false;                         // few points, each with a mark
};

struct ChartText {
  std::string title;
  std::string unit;     // unit of y; empty: none
  bool isShare = false; // y is shown as percent, from 0 on
};

/// A chart over steps. Empty where no series has points.
std::string lineChart(const ChartText &text, const std::vector<Series> &series);

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_SVG_H
