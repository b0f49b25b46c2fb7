// SPDX-License-Identifier: Apache-2.0
//
// `rota schedule`: make, verify, simulate and draw a timeline, or read one.
#include "tools/rota/Verbs.h"

#include "passes/pipeline/drawing/Drawing.h"
#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/timeline/Communication.h"
#include "passes/pipeline/timeline/GradientOrder.h"
#include "passes/pipeline/timeline/Offloading.h"
#include "passes/pipeline/timeline/TimelineVerifier.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "passes/pipeline/timeline/WeightWindows.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace rota {
namespace {

using namespace pipe;

int report(ExitCode code, const std::string &message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
  return code;
}

bool isFile(const std::string &schedule) { return schedule.ends_with(".csv"); }

/// A shape with the numbers that were given in place of `fallback`'s.
Shape shapeOf(const RunOptions &options, Shape fallback) {
  auto set = [&](const char *name, int64_t value, int &number) {
    if (options.given.contains(name))
      number = static_cast<int>(value);
  };
  set("ranks", options.stages, fallback.stages);
  set("chunks", options.repeats, fallback.repeats);
  set("microbatches", options.microbatches, fallback.microbatches);
  fallback.outer |= options.outer && !isFile(options.schedule);
  if (options.given.contains("placement"))
    fallback.placement = options.placement;
  return fallback;
}

int delayOf(const RunOptions &options) {
  return static_cast<int>(options.delay);
}

std::optional<Timeline> readTimeline(const RunOptions &options,
                                     std::string &error) {
  errno = 0;
  std::ifstream file(options.schedule, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    error = "cannot read '" + options.schedule + "': " + std::strerror(errno);
    return std::nullopt;
  }
  std::optional<ActionRows> rows = parseCsv(text, error);
  if (!rows) {
    error = options.schedule + ": " + error;
    return std::nullopt;
  }
  Shape shape = shapeOf(options, inferShape(*rows));
  return Timeline{shape, std::move(*rows), delayOf(options)};
}

std::optional<Timeline> timelineOf(const RunOptions &options,
                                   std::string &error) {
  if (!isFile(options.schedule)) {
    ScheduleRequest request{shapeOf(options, Shape()), delayOf(options),
                            options.splitBackward};
    return makeTimeline(options.schedule, request, error);
  }
  if (options.splitBackward) {
    error = "--split-backward applies to named schedules, got '" +
            options.schedule + "'";
    return std::nullopt;
  }
  return readTimeline(options, error);
}

/// Reports what is wrong with `timeline`, at most a screenful.
bool verify(const RunOptions &options, const Timeline &timeline) {
  constexpr size_t kMostShown = 20;
  std::vector<Violation> violations = verifyTimeline(timeline);
  for (size_t i = 0; i < violations.size() && i < kMostShown; ++i)
    report(kExitBadInput, options.schedule + ": " + violations[i].str());
  if (violations.size() > kMostShown)
    report(kExitBadInput, options.schedule + ": and " +
                              std::to_string(violations.size() - kMostShown) +
                              " more");
  return violations.empty();
}

/// Adds what the options ask for to a timeline of compute actions, or one that
/// has some of it already. Nothing, and an `error`, when options conflict.
std::optional<Timeline> complete(const RunOptions &options, Timeline timeline,
                                 std::string &error) {
  if (options.outer && !timeline.shape.outer) {
    std::optional<Timeline> whole = withUnpipelinedLayers(timeline, error);
    if (!whole)
      return std::nullopt;
    timeline = std::move(*whole);
  }
  bool gathers = hasAny(timeline, ActionKind::Unshard);
  if (options.communication && !hasCommunication(timeline))
    timeline = addCommunication(timeline);
  if (options.offload && !hasAny(timeline, ActionKind::Offload))
    timeline = offloadResiduals(
        timeline, std::vector<bool>(timeline.shape.chunks(), true), 1);
  if (!options.weightGather) {
    if (options.prefetch || (options.window && !gathers)) {
      error = options.prefetch ? "--prefetch" : "--window";
      error += " needs --weight-gather, got none";
      return std::nullopt;
    }
    if (options.window && *options.window < 1) {
      error = "expected a window of at least 1 chunk, got " +
              std::to_string(*options.window);
      return std::nullopt;
    }
    timeline.window = static_cast<int>(options.window.value_or(0));
    return timeline;
  }
  if (gathers) {
    error = "--weight-gather is for timelines without UNSHARD, got '" +
            std::string(nameOf(*options.weightGather)) + "' and '" +
            options.schedule + "', which has it";
    return std::nullopt;
  }
  return gatherWeights(
      timeline, {*options.weightGather, options.window, options.prefetch},
      error);
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
    return drawJson(timeline, simulation, options.schedule);
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
                      (shape.outer ? "unpipelined layers, " : "") +
                      counted(shape.microbatches, "microbatch", "es") + "\n";
  bool colour = options.output.empty() && isatty(STDOUT_FILENO) &&
                !std::getenv("NO_COLOR");
  return title + drawGrid(timeline, simulation, colour) + "\n" +
         drawReport(timeline, simulation);
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
  std::string error;
  std::optional<Timeline> timeline = timelineOf(options, error);
  if (!timeline)
    return report(kExitBadInput, error);
  if (!verify(options, *timeline))
    return kExitBadInput;
  timeline = complete(options, std::move(*timeline), error);
  if (!timeline)
    return report(kExitBadInput, error);
  if (!verify(options, *timeline))
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
