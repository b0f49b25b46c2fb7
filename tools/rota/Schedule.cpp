// SPDX-License-Identifier: Apache-2.0
//
// `rota schedule`: make, verify, simulate and draw a timeline, read one, or
// compare several.
#include "tools/rota/Verbs.h"

#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/timeline/GradientOrder.h"
#include "runtime/files/Streams.h"
#include "tools/rota/CompareSchedules.h"
#include "tools/rota/RequestedTimeline.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace rota {
namespace {

using namespace pipe;

int report(ExitCode code, const std::string &message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return code;
}

/// "1 rank", "2 ranks".
std::string counted(int count, const std::string &noun,
                    const std::string &plural = "s") {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : plural);
}

std::string draw(const RunOptions &options, const Timeline &timeline,
                 const Simulation &simulation) {
  switch (options.json ? TimelineFormat::JSON : options.format) {
  case TimelineFormat::CSV: // idle cells are slots, whatever the costs
    return drawCsv(timeline, *simulate(timeline, CostTable()));
  case TimelineFormat::JSON:
    return drawJson(timeline, simulation, *steadyStep(timeline, options.costs),
                    options.schedule);
  case TimelineFormat::SVG:
    return drawSvg(timeline, simulation, options.schedule);
  case TimelineFormat::Trace:
    return drawTrace(timeline, simulation, options.schedule);
  case TimelineFormat::Grid:
    break;
  }
  const Shape &shape = timeline.shape;
  std::string title = options.schedule + ": " + counted(shape.stages, "rank") +
                      ", " + counted(shape.repeats, "chunk") + " each, " +
                      (shape.hasUnpipelined ? "unpipelined layers, " : "") +
                      counted(shape.microbatches, "microbatch", "es") + "\n";
  bool colour = options.output.empty() && isatty(STDOUT_FILENO) &&
                !std::getenv("NO_COLOR");
  return title + drawGrid(timeline, simulation, colour) + "\n" +
         drawReport(timeline, simulation, *steadyStep(timeline, options.costs));
}

} // namespace

int runSchedule(const RunOptions &options) {
  if (!options.compare.empty()) {
    bool exists = false;
    int code = writeOutput(options.output, compareSchedules(options, exists));
    return exists ? code : kExitBadInput;
  }
  std::vector<std::string> errors;
  std::optional<Timeline> timeline = requestedTimeline(options, errors);
  for (const std::string &error : errors)
    report(kExitBadInput, error);
  if (!timeline)
    return kExitBadInput;
  if (std::string reordered = reorderedGradients(*timeline); !reordered.empty())
    std::fprintf(
        stderr,
        "remark: %s: gradients are added in another order than that of "
        "ascending microbatches: %s\n",
        options.schedule.c_str(), reordered.c_str());
  std::optional<Simulation> simulation = simulate(*timeline, options.costs);
  return writeOutput(options.output, draw(options, *timeline, *simulation));
}

} // namespace rota
