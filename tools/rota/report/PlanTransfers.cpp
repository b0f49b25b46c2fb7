// SPDX-License-Identifier: Apache-2.0
//
// The transfers of a plan, and the front of a search.
#include "tools/rota/report/PlanPage.h"
#include "tools/rota/report/Svg.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota::report {

namespace {

constexpr size_t kMostSorts = 40; // rows of the table by sort

/// The exposed share of the transfers at `path`.
std::string exposedShare(const Json &transfer) {
  double seconds = number(transfer, "seconds").value_or(0);
  double exposed = number(transfer, "exposed_seconds").value_or(0);
  return seconds > 0 ? percentText(exposed / seconds) : "-";
}

std::string timeCells(const Json &plan, const std::string &path,
                      const Json &transfer) {
  return fmt::format("<td>{}</td><td>{}</td><td>{}</td><td>{}</td>",
                     dataOf(plan, path + "bytes", byteText),
                     dataOf(plan, path + "seconds", secondsText),
                     dataOf(plan, path + "exposed_seconds", secondsText),
                     exposedShare(transfer));
}

std::string axisTable(const Json &plan) {
  const Json &axes = member(plan, "transfers_by_axes");
  std::string rows;
  for (size_t i = 0; i < axes.size(); ++i)
    rows += fmt::format(
        "<tr><th>{}</th>{}</tr>\n", escaped(text(axes[i], "axes")),
        timeCells(plan, fmt::format("transfers_by_axes.{}.", i), axes[i]));
  return "<div class=\"scroll\"><table class=\"many\">\n<tr><th>axes</th>"
         "<th>sent</th><th>time</th><th>exposed</th><th>share</th></tr>\n" +
         rows + "</table></div>\n";
}

std::string sortRow(const Json &plan, size_t number) {
  const Json &transfer = member(plan, "transfers")[number];
  std::string path = fmt::format("transfers.{}.", number);
  return fmt::format(
      "<tr><th>{}</th><td class=\"left\">{}</td><td class=\"left\">{}</td>"
      "<td>{}</td>{}<td class=\"left\">{}</td></tr>\n",
      escaped(text(transfer, "transfer")), escaped(text(transfer, "axes")),
      escaped(text(transfer, "tensor")),
      dataOf(plan, path + "times", wholeText), timeCells(plan, path, transfer),
      escaped(text(transfer, "why")));
}

/// The plans of a search as points.
class FrontChart {
public:
  explicit FrontChart(const std::vector<SearchedPlan> &plans)
      : plans(plans), drawing(kWidth, kHeight) {
    for (const SearchedPlan &plan : plans) {
      mostBytes = std::max(mostBytes, double(plan.bytes));
      mostSeconds = std::max(mostSeconds, plan.seconds);
      leastSeconds = std::min(leastSeconds, plan.seconds);
    }
    // A margin below and above the points.
    double margin =
        std::max(0.08 * (mostSeconds - leastSeconds), 0.02 * mostSeconds);
    leastSeconds = std::max(0.0, leastSeconds - margin);
    mostSeconds += margin;
    mostBytes *= 1.05;
  }

  std::string draw() {
    if (!(mostBytes > 0) || !(mostSeconds > leastSeconds))
      return "";
    drawAxes();
    std::vector<const SearchedPlan *> front;
    for (const SearchedPlan &plan : plans)
      if (plan.isOnFront)
        front.push_back(&plan);
    std::sort(front.begin(), front.end(),
              [](const auto *a, const auto *b) { return a->bytes < b->bytes; });
    std::vector<std::pair<double, double>> points;
    for (const SearchedPlan *plan : front)
      points.emplace_back(xOf(plan->bytes), yOf(plan->seconds));
    if (points.size() > 1)
      drawing.addPath(points, "s1");
    for (const SearchedPlan &plan : plans)
      if (!plan.isOnFront && !plan.isBest)
        drawPoint(plan, 3, "other");
    for (const SearchedPlan *plan : front)
      if (!plan->isBest)
        drawPoint(*plan, 4, "fill s1");
    for (const SearchedPlan &plan : plans)
      if (plan.isBest)
        drawPoint(plan, 7, "fill s2 best");
    return drawing.finish("Time and memory of the plans of the search");
  }

private:
  static constexpr double kWidth = 1150, kHeight = 360, kLeft = 80, kRight = 24,
                          kTop = 12, kBottom = 40;

  double xOf(int64_t bytes) const {
    return kLeft + double(bytes) / mostBytes * (kWidth - kLeft - kRight);
  }
  double yOf(double seconds) const {
    return kHeight - kBottom -
           (seconds - leastSeconds) / (mostSeconds - leastSeconds) *
               (kHeight - kTop - kBottom);
  }

  void drawAxes() {
    for (double tick : roundTicks(leastSeconds, mostSeconds, 6)) {
      drawing.addLine(kLeft, yOf(tick), kWidth - kRight, yOf(tick), "grid");
      drawing.addText(kLeft - 6, yOf(tick) + 4, secondsText(tick), "end",
                      "tick");
    }
    for (double tick : byteTicks(mostBytes, 8))
      drawing.addText(xOf(int64_t(tick)), kHeight - kBottom + 16,
                      byteText(tick), "middle", "tick");
    drawing.addLine(kLeft, kHeight - kBottom, kWidth - kRight,
                    kHeight - kBottom, "axis");
    drawing.addText((kLeft + kWidth - kRight) / 2, kHeight - 6,
                    "memory of the rank that needs most", "middle", "tick");
  }

  void drawPoint(const SearchedPlan &plan, double radius,
                 const std::string &style) {
    drawing.addCircle(xOf(plan.bytes), yOf(plan.seconds), radius, style,
                      fmt::format("{}: {}, {}", plan.name,
                                  secondsText(plan.seconds),
                                  byteText(double(plan.bytes))));
  }

  const std::vector<SearchedPlan> &plans;
  SvgDrawing drawing;
  double mostBytes = 0, mostSeconds = 0, leastSeconds = 1e300;
};

} // namespace

std::string planTransferSection(const Json &plan) {
  const Json &transfers = member(plan, "transfers");
  if (transfers.empty())
    return "";
  std::string rows;
  size_t shown = std::min(kMostSorts, transfers.size());
  for (size_t i = 0; i < shown; ++i)
    rows += sortRow(plan, i);
  std::string note =
      shown == transfers.size()
          ? ""
          : fmt::format("<p>The {} most exposed of {} sorts.</p>\n", shown,
                        transfers.size());
  return "<h2>Transfers</h2>\n<p>Of one rank in one step, each on the stage "
         "where it takes longest; the most exposed first. Exposed is the time "
         "in which the rank does nothing else.</p>\n" +
         axisTable(plan) +
         "<details open><summary>By sort</summary>\n<div class=\"scroll\">"
         "<table class=\"many\">\n<tr><th>transfer</th><th class=\"left\">"
         "axes</th><th class=\"left\">tensor</th><th>times</th><th>sent</th>"
         "<th>time</th><th>exposed</th><th>share</th><th class=\"left\">why"
         "</th></tr>\n" +
         rows + "</table></div>\n" + note + "</details>\n";
}

std::string searchSection(const std::vector<SearchedPlan> &plans) {
  std::string picture = FrontChart(plans).draw();
  if (picture.empty())
    return "";
  std::string best;
  for (const SearchedPlan &plan : plans)
    if (plan.isBest)
      best = fmt::format("<p><span class=\"key\" style=\"background:var(--s2)"
                         "\">&nbsp;</span> the plan of this page: {}, {}, {}"
                         "</p>\n",
                         escaped(plan.name), escaped(secondsText(plan.seconds)),
                         escaped(byteText(double(plan.bytes))));
  return "<h2>Search</h2>\n<p>Time of a step and memory of each plan; the line "
         "joins those that no other one beats in both.</p>\n" +
         best + "<div class=\"wide\">" + picture + "</div>\n";
}

} // namespace rota::report
