// SPDX-License-Identifier: Apache-2.0
//
// `rota schedule`: make, verify, simulate and draw a timeline, read one, or
// compare several.
#include "tools/rota/Verbs.h"

#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/drawing/Table.h"
#include "passes/pipeline/timeline/GradientOrder.h"
#include "runtime/files/Streams.h"
#include "runtime/files/Terminal.h"
#include "runtime/text/Text.h"
#include "tools/planner/CompareSchedules.h"
#include "tools/rota/Requests.h"

#include <cstdio>
#include <cstdlib>

namespace rota {
namespace {

using namespace pipe;

int report(ExitCode code, const std::string &message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return code;
}

/// The format that is given, or else the one that the output's name means.
TimelineFormat formatOf(const RunOptions &options) {
  if (options.json)
    return TimelineFormat::JSON;
  if (!options.given.contains("format"))
    for (auto [ending, format] : {std::pair(".csv", TimelineFormat::CSV),
                                  {".json", TimelineFormat::JSON},
                                  {".svg", TimelineFormat::SVG}})
      if (options.output.ends_with(ending))
        return format;
  return options.format;
}

std::string draw(const RunOptions &options, const RequestedTimeline &made) {
  const Timeline &timeline = made.timeline;
  Simulation simulation = *simulate(timeline, made.costs);
  SteadyStep steady = *steadyStep(timeline, made.costs);
  switch (formatOf(options)) {
  case TimelineFormat::CSV: // idle cells are slots, whatever the costs
    return drawCsv(timeline, *simulate(timeline, CostTable()));
  case TimelineFormat::JSON:
    return drawJson(timeline, simulation, steady,
                    options.compiler.schedule.schedule);
  case TimelineFormat::SVG:
    return drawSvg(timeline, simulation, options.compiler.schedule.schedule);
  case TimelineFormat::Trace:
    return drawTrace(timeline, simulation, options.compiler.schedule.schedule);
  case TimelineFormat::Grid:
    break;
  }
  const Shape &shape = timeline.shape;
  std::string title = options.compiler.schedule.schedule + ": " +
                      counted(shape.stages, "rank") + ", " +
                      counted(shape.repeats, "chunk") + " each, " +
                      (shape.hasUnpipelined ? "unpipelined layers, " : "") +
                      counted(shape.microbatches, "microbatch", "es") + "\n";
  GridStyle style;
  if (options.output.empty() || options.output == "-")
    style = {isTerminal() && !std::getenv("NO_COLOR"), terminalWidth()};
  return title + drawGrid(timeline, simulation, style) + "\n" +
         drawReport(timeline, simulation, steady);
}

/// Prints the remark of a search.
void remarkSearch(const std::string &schedule, const std::string &search) {
  if (!search.empty())
    std::fprintf(stderr, "remark: %s: %s\n", schedule.c_str(), search.c_str());
}

/// "ranks 8, microbatches 32; all layers of a rank: F 1, B 2, I 1, W 1, message
/// 0".
std::string title(const TimelineRequest &request) {
  const CostTable &costs = request.costs;
  std::string text = "ranks " + std::to_string(*request.stages) +
                     ", microbatches " + std::to_string(*request.microbatches) +
                     "; all layers of a rank: ";
  for (auto [name, cost] : {std::pair("F ", costs.forward),
                            {", B ", costs.backward},
                            {", I ", costs.backwardInput},
                            {", W ", costs.backwardWeight},
                            {", message ", costs.send}})
    text += name + numberCell(cost);
  return text + "\n";
}

/// A table of the schedules `options.compare`, or a JSON array of their rows;
/// with `options.sweep`, one table for each of S, 2*S, 4*S and 8*S
/// microbatches. B costs what I and W do unless its cost is given. Fails when
/// none of the schedules exists.
int compare(const RunOptions &options) {
  TimelineFormat format = formatOf(options);
  if (format != TimelineFormat::Grid && format != TimelineFormat::JSON)
    return report(kExitBadInput,
                  "'output': expected a name for text or .json with "
                  "'compare', got '" +
                      options.output + "'");
  TimelineRequest request = timelineRequest(options);
  if (!options.given.contains("cost-backward"))
    request.costs.backward =
        request.costs.backwardInput + request.costs.backwardWeight;
  std::vector<int64_t> counts = {options.compiler.schedule.microbatches};
  if (options.sweep)
    counts = {options.compiler.schedule.stages,
              2 * options.compiler.schedule.stages,
              4 * options.compiler.schedule.stages,
              8 * options.compiler.schedule.stages};
  bool exists = false;
  std::string text;
  std::vector<ComparedSchedule> all;
  for (int64_t count : counts) {
    request.microbatches = int(count);
    auto [rows, searches] = compareSchedules(request, options.compare);
    text += (text.empty() ? "" : "\n") + title(request) + drawComparison(rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      exists |= rows[i].error.empty();
      remarkSearch(rows[i].name, searches[i]);
    }
    all.insert(all.end(), rows.begin(), rows.end());
  }
  bool isJson = format == TimelineFormat::JSON;
  int code =
      writeOutput(options.output, isJson ? drawComparisonJson(all) : text);
  return exists ? code : kExitBadInput;
}

} // namespace

int runSchedule(const RunOptions &options) {
  if (!options.compare.empty())
    return compare(options);
  std::vector<std::string> errors;
  auto made = requestedTimeline(timelineRequest(options), errors);
  for (const std::string &error : errors)
    report(kExitBadInput, error);
  if (!made)
    return kExitBadInput;
  remarkSearch(options.compiler.schedule.schedule, made->search);
  const Timeline &timeline = made->timeline;
  if (std::string reordered = reorderedGradients(timeline); !reordered.empty())
    std::fprintf(
        stderr,
        "remark: %s: gradients are added in another order than that of "
        "ascending microbatches: %s\n",
        options.compiler.schedule.schedule.c_str(), reordered.c_str());
  return writeOutput(options.output, draw(options, *made));
}

} // namespace rota
