// SPDX-License-Identifier: Apache-2.0
//
// Messages and transfers of a step by their kind, real and planned.
#include "runtime/program/Action.h"
#include "runtime/text/Text.h"
#include "tools/rota/report/Svg.h"
#include "tools/rota/report/Tables.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota::report {

namespace {

const char *meaningOf(ActionKind kind) {
  switch (kind) {
  case ActionKind::SendForward:
    return "activations to the next stage";
  case ActionKind::RecvForward:
    return "activations of the stage before";
  case ActionKind::SendBackward:
    return "cotangents to the stage before";
  case ActionKind::RecvBackward:
    return "cotangents of the next stage";
  case ActionKind::Unshard:
    return "weights, gathered for their uses";
  case ActionKind::ReduceGrad:
    return "gradients, summed after their uses";
  case ActionKind::SumGrad:
    return "gradients, summed for the optimizer";
  case ActionKind::Refresh:
    return "weights that the optimizer has updated";
  case ActionKind::Offload:
    return "residuals, to host memory";
  case ActionKind::Fetch:
    return "residuals, from host memory";
  default:
    return "";
  }
}

/// Seconds of a rank in a step, means.
struct ExposedTimes {
  double count = 0, seconds = 0, exposed = 0;
};

struct Line {
  std::string name, meaning;
  std::optional<ExposedTimes> real, planned;

  double exposed() const {
    return real ? real->exposed : planned ? planned->exposed : 0;
  }
};

/// The sums of summary.json are over the steps of its process on `ranks` ranks.
std::optional<ExposedTimes> realTimes(const Json &summary, const Json &times,
                                      double ranks) {
  auto seconds = number(times, "seconds"), waited = number(times, "waited");
  double parts =
      ranks * stepsOfProcess(summary).value_or(ProcessSteps()).count();
  if (!seconds || !waited || !(parts > 0))
    return std::nullopt;
  return ExposedTimes{number(times, "count").value_or(0) / parts,
                      *seconds / parts, *waited / parts};
}

std::optional<ExposedTimes> plannedTimesOf(const Json &run, const char *kind) {
  ExposedTimes sum;
  double stages = 0;
  for (const Json &stage : member(run, "stages")) {
    const Json &times = member(member(stage, "transfers"), kind);
    sum.count += number(times, "count").value_or(0);
    sum.seconds += number(times, "seconds").value_or(0);
    sum.exposed += number(times, "exposed").value_or(0);
    ++stages;
  }
  if (!(sum.count > 0))
    return std::nullopt;
  return ExposedTimes{sum.count / stages, sum.seconds / stages,
                      sum.exposed / stages};
}

std::vector<Line> linesOf(const RunFolder &folder) {
  std::vector<Line> lines;
  double ranks = number(folder.run, "ranks").value_or(1);
  for (int k = 0; k < kActionKindCount; ++k) {
    ActionKind kind{k};
    if (!isAsynchronous(kind))
      continue;
    Line line{
        toString(kind), meaningOf(kind),
        realTimes(folder.summary,
                  member(member(folder.summary, "transfers"), toString(kind)),
                  ranks),
        plannedTimesOf(folder.run, toString(kind))};
    if (line.real || line.planned)
      lines.push_back(line);
  }
  std::optional<ExposedTimes> stepEnd =
      realTimes(folder.summary, member(folder.summary, "step_end"), ranks);
  if (stepEnd && stepEnd->seconds > 0)
    lines.push_back({"step end",
                     "gradients, norms and weights, after the last action",
                     stepEnd, std::nullopt});
  auto seconds = number(folder.summary, "in_task_seconds");
  double steps =
      stepsOfProcess(folder.summary).value_or(ProcessSteps()).count();
  if (seconds && *seconds > 0 && steps > 0 && ranks > 0) {
    double mean = *seconds / steps / ranks;
    lines.push_back({"in tasks", "collectives that computation waits for",
                     ExposedTimes{0, mean, mean}, std::nullopt});
  }
  std::stable_sort(
      lines.begin(), lines.end(),
      [](const auto &a, const auto &b) { return a.exposed() > b.exposed(); });
  return lines;
}

std::string cells(const std::optional<ExposedTimes> &times) {
  if (!times)
    return "<td>-</td><td>-</td><td>-</td>";
  std::string hidden =
      times->seconds > 0
          ? fmt::format("{:.0f} %", 100 * (1 - times->exposed / times->seconds))
          : "-";
  return fmt::format("<td>{}</td><td>{}</td><td>{}</td>",
                     secondsText(times->exposed), secondsText(times->seconds),
                     hidden);
}

} // namespace

std::string transferSection(const RunFolder &folder) {
  std::vector<Line> lines = linesOf(folder);
  if (lines.empty())
    return "";
  std::string rows;
  for (const Line &line : lines) {
    const ExposedTimes &counted = line.real ? *line.real : *line.planned;
    rows += fmt::format(
        "<tr><th>{}</th><td class=\"left\">{}</td><td>{}</td>{}{}</tr>\n",
        escaped(line.name), escaped(line.meaning),
        counted.count > 0 ? fmt::format("{:.1f}", counted.count) : "-",
        cells(line.real), cells(line.planned));
  }
  return "<h2>Transfers</h2>\n<p>Of one rank in one step, means; the most "
         "exposed first. Exposed is the time in which bytes moved while the "
         "rank waited for them. Planned times are those of the machine of "
         "the plan and not scaled.</p>\n<div class=\"wide\"><table "
         "class=\"many\">\n"
         "<tr><th></th><th></th><th></th><th colspan=\"3\">real</th>"
         "<th colspan=\"3\">planned</th></tr>\n"
         "<tr><th>transfer</th><th class=\"left\">what</th><th>times</th>"
         "<th>exposed</th><th>time</th><th>hidden</th>"
         "<th>exposed</th><th>time</th><th>hidden</th></tr>\n" +
         rows + "</table></div>\n";
}

} // namespace rota::report
