// SPDX-License-Identifier: Apache-2.0
//
// `rota schedule`: make, verify, simulate and draw a timeline, read one, or
// compare several.
#include "tools/rota/Verbs.h"

#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/timeline/GradientOrder.h"
#include "tools/rota/CompareSchedules.h"
#include "tools/rota/RequestedTimeline.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
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

int write(const RunOptions &options, const std::string &text) {
  errno = 0;
  bool toFile = !options.output.empty();
  std::FILE *file = toFile ? std::fopen(options.output.c_str(), "wb") : stdout;
  bool written =
      file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file)
    written &= (toFile ? std::fclose(file) : std::fflush(file)) == 0;
  if (written)
    return kExitSuccess;
  std::string reason = std::strerror(errno);
  // A file that is not complete is removed, but no device and no pipe.
  std::error_code ignored;
  if (file && std::filesystem::is_regular_file(options.output, ignored))
    std::filesystem::remove(options.output, ignored);
  return report(kExitRunFailed, "cannot write '" +
                                    (toFile ? options.output : "-") +
                                    "': " + reason);
}

} // namespace

int runSchedule(const RunOptions &options) {
  if (!options.compare.empty()) {
    bool exists = false;
    int code = write(options, compareSchedules(options, exists));
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
  return write(options, draw(options, *timeline, *simulation));
}

} // namespace rota
