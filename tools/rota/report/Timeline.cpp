// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/report/Timeline.h"

#include "runtime/program/Action.h"
#include "tools/rota/report/TimelineChart.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

namespace rota::report {

namespace {

bool isComputeName(const std::string &name) {
  std::string kind = kindOf(name);
  for (int k = 0; k < kActionKindCount; ++k)
    if (kind == toString(ActionKind(k)))
      return isCompute(ActionKind(k));
  return false;
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

  std::vector<TimelineRow> read() {
    findRun();
    for (const Json &event : events)
      add(event);
    std::vector<TimelineRow> result;
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
    TimelineRow &row = rows[{rank, isPlanned}];
    row.label = fmt::format("rank {}", rank);
    row.source = isPlanned ? "planned" : "real";
    std::string name = text(event, "name");
    row.slices.push_back({name, *begin * 1e-6, (*begin + *length) * 1e-6,
                          isComputeName(name), title.ends_with(" pair"), ""});
  }

  const Json &events;
  std::map<double, std::string> names; // names of lanes
  std::map<std::pair<int, bool>, TimelineRow> rows;
  double run = -1;
};

/// The planned times of run.json.
std::vector<TimelineRow> plannedRows(const Json &run) {
  std::vector<TimelineRow> rows;
  for (const Json &stage : member(run, "stages")) {
    TimelineRow row{fmt::format("stage {}", rows.size()), "planned", {}};
    for (const Json &action : member(stage, "planned"))
      if (action.is_array() && action.size() == 4 && action[0].is_string() &&
          action[2].is_number() && action[3].is_number()) {
        std::string name = action[0].get<std::string>();
        row.slices.push_back({name, action[2].get<double>(),
                              action[3].get<double>(), isComputeName(name),
                              /*endsPair=*/false, ""});
      }
    rows.push_back(std::move(row));
  }
  return rows;
}

} // namespace

std::string timelineSection(const RunFolder &folder) {
  std::vector<TimelineRow> rows;
  if (folder.trace.is_array())
    rows = TraceReader(folder.trace).read();
  bool isReal = !rows.empty();
  if (!isReal)
    rows = plannedRows(folder.run);
  std::string picture = timelineChart(std::move(rows));
  if (picture.empty())
    return "";
  const char *meaning =
      isReal ? "The last traced step. Planned times are those of the machine "
               "that the compiler assumes, scaled so that the ranks compute "
               "as long as they really did."
             : "No trace: the planned times on the machine that the compiler "
               "assumes.";
  return fmt::format(
      "<h2>Timeline</h2>\n<p>{} <span class=\"faint\">3B1 is the "
      "backward pass of chunk 3 on microbatch 1.</span></p>\n"
      "<p>{}</p>\n{}",
      meaning, timelineLegend(), picture);
}

} // namespace rota::report
