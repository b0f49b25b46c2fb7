// SPDX-License-Identifier: Apache-2.0
//
// A timeline as a picture whose width is time.
#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/drawing/Lanes.h"
#include "passes/pipeline/drawing/Markup.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace rota::pipe {
namespace {

/// A file's name need not be UTF-8, which a picture must be.
std::string printable(std::string name) {
  std::ranges::replace_if(name, [](char c) { return c < ' ' || c > '~'; }, '?');
  return name;
}

/// One hue for each kind; darker for later rows of chunks.
std::string fillColour(const Shape &shape, const Action &action) {
  constexpr int kHues[] = {212, 28, 150, 285};
  int rows = shape.rows() + shape.hasUnpipelined;
  int row = shape.rowOf(action.chunk);
  int light = 86 - (rows > 1 ? 26 * row / (rows - 1) : 0);
  return fmt::format("hsl({},70%,{}%)", kHues[static_cast<int>(action.kind)],
                     light);
}

/// A row for each rank, under it a thin one for each kind of transfer, and an
/// axis of time at the bottom.
class Picture {
public:
  Picture(const Timeline &timeline, const Simulation &simulation)
      : timeline(timeline), simulation(simulation), scale(findScale()),
        bottom(kTitle) {
    for (ActionKind kind : transferKinds())
      if (hasAny(timeline, kind))
        lanes.push_back(kind);
  }

  std::string draw(const std::string &name) {
    for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
      drawRank(rank);
    drawAxis();
    std::string title = fmt::format("{}, bubble {:.1f} %", printable(name),
                                    100 * simulation.bubble);
    int width = std::max(xOf(simulation.makespan) + kMargin,
                         widthOf(title.size()) + 16);
    int height = bottom + 10;
    return fmt::format(
        R"svg(<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}"
 viewBox="0 0 {0} {1}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="white"/>
<text x="8" y="20">{2}</text>
{3}</svg>
)svg",
        width, height, escaped(title), body);
  }

private:
  static constexpr int kCell = 34, kRow = 26, kLane = 16, kLabel = 64,
                       kTitle = 30, kMargin = 24, kTick = 5;
  /// Viewers have trouble with wider pictures.
  static constexpr double kMostWidth = 30000;

  const Timeline &timeline;
  const Simulation &simulation;
  double scale; // pixels in a unit of time
  std::vector<ActionKind> lanes;
  std::string body;
  int bottom; // edge of what is drawn

  /// Pixels of a box that has room for a name of so many characters.
  static int widthOf(size_t characters) { return 7 * int(characters) + 4; }

  /// The shortest compute action is as wide as the longest name.
  double findScale() const {
    double shortest = simulation.makespan;
    int cell = kCell;
    for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
      for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
        const TimeSpan &span = simulation.spans[rank][i];
        const Action &action = timeline.ranks[rank][i];
        if (!isCompute(action.kind) || span.end <= span.start)
          continue;
        shortest = std::min(shortest, span.end - span.start);
        cell = std::max(cell, widthOf(toString(action).size()));
      }
    if (shortest <= 0)
      return 1;
    return std::min(cell / shortest, kMostWidth / simulation.makespan);
  }

  int xOf(double time) const { return kLabel + int(std::lround(time * scale)); }

  void drawRank(size_t rank) {
    int y = bottom;
    body +=
        fmt::format("<text x=\"8\" y=\"{}\">rank {}</text>\n", y + 17, rank);
    for (const Wait &wait : simulation.ranks[rank].waits)
      drawWait(wait, y);
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
      const Action &action = timeline.ranks[rank][i];
      const TimeSpan &span = simulation.spans[rank][i];
      auto lane = std::find(lanes.begin(), lanes.end(), action.kind);
      bool second = endsPair(timeline.ranks[rank], i);
      int height = action.startsPair || second ? kRow / 2 : kRow;
      if (isCompute(action.kind))
        drawAction(action, span, second ? y + height : y, height,
                   fillColour(timeline.shape, action));
      else if (lane != lanes.end())
        drawAction(action, span, y + kRow + int(lane - lanes.begin()) * kLane,
                   kLane, "hsl(0,0%,85%)");
    }
    bottom += kRow + int(lanes.size()) * kLane;
  }

  /// A box from `start` to `end`, with a text that viewers show on demand.
  void drawBox(const TimeSpan &span, int y, int height, const std::string &look,
               const std::string &title) {
    int x = xOf(span.start), width = std::max(4, xOf(span.end) - x);
    body += fmt::format(R"svg(<rect x="{}" y="{}" width="{}" height="{}" )svg"
                        R"svg(rx="3" {}><title>{}</title></rect>)svg",
                        x, y, width - 2, height - 2, look, title);
  }

  void drawAction(const Action &action, const TimeSpan &span, int y, int height,
                  const std::string &colour) {
    std::string name = toString(action);
    drawBox(span, y, height, "fill=\"" + colour + "\"", name);
    int x = xOf(span.start), width = xOf(span.end) - x;
    if (width >= widthOf(name.size()))
      body += text(x + width / 2 - 1, y + height / 2 + 4, name);
    body += "\n";
  }

  void drawWait(const Wait &wait, int y) {
    drawBox(wait.span, y + 4, kRow - 8,
            "fill=\"none\" stroke=\"red\" stroke-dasharray=\"3\"",
            std::string("waits for ") + waitedFor(wait));
    body += "\n";
  }

  static std::string text(int x, int y, const std::string &name) {
    return fmt::format(
        R"svg(<text x="{}" y="{}" text-anchor="middle">{}</text>)svg", x, y,
        name);
  }

  void drawAxis() {
    bottom += kTick;
    double end = simulation.makespan;
    if (end <= 0)
      return;
    for (double time :
         roundTicks(0, end, std::max(1, int(end * scale / (3 * kCell)))))
      body += fmt::format("<path d=\"M{} {}v{}\" stroke=\"gray\"/>", xOf(time),
                          bottom, kTick) +
              text(xOf(time), bottom + kTick + 12, fmt::format("{:g}", time)) +
              "\n";
    bottom += kTick + 14;
  }
};

} // namespace

std::string drawSvg(const Timeline &timeline, const Simulation &simulation,
                    const std::string &name) {
  return Picture(timeline, simulation).draw(name);
}

} // namespace rota::pipe
