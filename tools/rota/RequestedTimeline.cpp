// SPDX-License-Identifier: Apache-2.0
//
// See RequestedTimeline.h.
#include "tools/rota/RequestedTimeline.h"

#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/search/Search.h"
#include "passes/pipeline/timeline/Communication.h"
#include "passes/pipeline/timeline/Offloading.h"
#include "passes/pipeline/timeline/TimelineVerifier.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "passes/pipeline/timeline/WeightWindows.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

namespace rota {
namespace {

using namespace pipe;

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
  fallback.hasUnpipelined |= options.unpipelined && !isFile(options.schedule);
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

/// The shape of a named schedule: its own placement and chunks where the
/// options give none.
Shape namedShape(const RunOptions &options) {
  Shape shape = shapeOf(options, Shape());
  Shape demanded = demandedShape(options.schedule, shape);
  if (!options.given.contains("chunks"))
    shape.repeats = demanded.repeats;
  if (!options.given.contains("placement"))
    shape.placement = demanded.placement;
  return shape;
}

std::optional<Timeline> timelineOf(const RunOptions &options,
                                   std::string &error) {
  if (!isFile(options.schedule)) {
    SearchReport report;
    ScheduleRequest request{
        namedShape(options), delayOf(options), options.splitBackward,
        static_cast<int>(options.activations), options.pairs};
    request.costs = options.costs;
    request.communicates = options.communication;
    request.anyPlacement = !options.given.contains("placement");
    request.report = &report;
    std::optional<Timeline> timeline =
        makeTimeline(options.schedule, request, error);
    if (timeline && report.rules > 0)
      std::fprintf(stderr, "remark: %s: %s\n", options.schedule.c_str(),
                   report.str().c_str());
    return timeline;
  }
  if (options.activations > 0) {
    error = "--activations applies to named schedules, got '" +
            options.schedule + "'";
    return std::nullopt;
  }
  if (options.pairs) {
    error = "--pairs applies to named schedules, got '" + options.schedule +
            "', which keeps its own";
    return std::nullopt;
  }
  if (options.splitBackward) {
    error = "--split-backward applies to named schedules, got '" +
            options.schedule + "'";
    return std::nullopt;
  }
  return readTimeline(options, error);
}

/// What is wrong with `timeline`, at most a screenful.
std::vector<std::string> verified(const RunOptions &options,
                                  const Timeline &timeline) {
  constexpr size_t kMostShown = 20;
  std::vector<Violation> violations = verifyTimeline(timeline);
  std::vector<std::string> lines;
  for (size_t i = 0; i < violations.size() && i < kMostShown; ++i)
    lines.push_back(options.schedule + ": " + violations[i].str());
  if (violations.size() > kMostShown)
    lines.push_back(options.schedule + ": and " +
                    std::to_string(violations.size() - kMostShown) + " more");
  return lines;
}

/// Adds what the options ask for to a timeline of compute actions, or one that
/// has some of it already. Nothing, and an `error`, when options conflict.
std::optional<Timeline> complete(const RunOptions &options, Timeline timeline,
                                 std::string &error) {
  if (options.unpipelined && !timeline.shape.hasUnpipelined) {
    std::optional<Timeline> whole = withUnpipelinedLayers(timeline, error);
    if (!whole)
      return std::nullopt;
    timeline = std::move(*whole);
  }
  bool gathers = hasAny(timeline, ActionKind::Unshard);
  if (options.communication && !hasCommunication(timeline))
    timeline = addCommunication(timeline, options.costs);
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

} // namespace

std::optional<Timeline> requestedTimeline(const RunOptions &options,
                                          std::vector<std::string> &errors) {
  std::string error;
  std::optional<Timeline> timeline = timelineOf(options, error);
  if (timeline)
    errors = verified(options, *timeline);
  if (timeline && errors.empty()) {
    timeline = complete(options, std::move(*timeline), error);
    if (timeline)
      errors = verified(options, *timeline);
  }
  if (!timeline)
    errors = {error};
  return errors.empty() ? std::move(timeline) : std::nullopt;
}

} // namespace rota
