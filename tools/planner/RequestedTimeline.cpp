// SPDX-License-Identifier: Apache-2.0
//
// See RequestedTimeline.h.
#include "tools/planner/RequestedTimeline.h"

#include "passes/pipeline/drawing/Comparison.h"
#include "passes/pipeline/search/Forms.h"
#include "passes/pipeline/timeline/Communication.h"
#include "passes/pipeline/timeline/Offloading.h"
#include "passes/pipeline/timeline/TimelineVerifier.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "passes/pipeline/timeline/WeightWindows.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace rota {
namespace {

using namespace pipe;

bool isFile(const std::string &schedule) { return schedule.ends_with(".csv"); }

/// `fallback` with the numbers of the request in place of its own.
Shape shapeOf(const TimelineRequest &request, Shape fallback) {
  Shape shape = fallback;
  shape.stages = request.stages.value_or(fallback.stages);
  shape.repeats = request.repeats.value_or(fallback.repeats);
  shape.microbatches = request.microbatches.value_or(fallback.microbatches);
  shape.hasUnpipelined |= request.unpipelined && !isFile(request.schedule);
  shape.placement = request.placement.value_or(fallback.placement);
  return shape;
}

std::optional<Timeline> readTimeline(const TimelineRequest &request,
                                     std::string &error) {
  errno = 0;
  std::ifstream file(request.schedule, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) {
    error = "cannot read '" + request.schedule + "': " + std::strerror(errno);
    return std::nullopt;
  }
  std::optional<ActionRows> rows = parseCsv(text, error);
  if (!rows) {
    error = request.schedule + ": " + error;
    return std::nullopt;
  }
  Shape shape = shapeOf(request, inferShape(*rows));
  return Timeline{shape, std::move(*rows), request.delay};
}

/// The shape of a named schedule: its own placement and chunks where the
/// request gives none.
Shape namedShape(const TimelineRequest &request) {
  Shape shape = shapeOf(request, Shape());
  Shape demanded = demandedShape(request.schedule, shape);
  shape.repeats = request.repeats.value_or(demanded.repeats);
  shape.placement = request.placement.value_or(demanded.placement);
  return shape;
}

CostTable costsOf(const TimelineRequest &request, const Shape &shape) {
  return request.costsAreOfRanks ? costsOfChunks(shape, request.costs)
                                 : request.costs;
}

std::optional<Timeline> namedTimeline(const TimelineRequest &request,
                                      std::string &search, std::string &error) {
  error = checkActivationBound(request.activations);
  if (!error.empty()) {
    error = "'activations': " + error;
    return std::nullopt;
  }
  ScheduleRequest named{namedShape(request), request.delay,
                        request.splitBackward.value_or(false), 0,
                        request.pairs};
  if (!isSearch(request.schedule)) {
    named.activations = chunkActivations(request.activations, named.shape);
    return makeTimeline(request.schedule, named, error);
  }
  named.communicates = request.communication;
  named.anyPlacement = !request.placement;
  SearchReport report;
  std::optional<Timeline> timeline = searchForms(
      request.schedule, named, {!request.repeats, !request.splitBackward},
      request.activations,
      [&](const Shape &shape) { return costsOf(request, shape); }, report,
      error);
  if (timeline)
    search = report.str();
  return timeline;
}

std::optional<Timeline> timelineOf(const TimelineRequest &request,
                                   std::string &search, std::string &error) {
  if (!isFile(request.schedule))
    return namedTimeline(request, search, error);
  if (request.pairs) {
    error = "--pairs applies to named schedules, got '" + request.schedule +
            "', which keeps its own";
    return std::nullopt;
  }
  if (request.splitBackward.value_or(false)) {
    error = "--split-backward applies to named schedules, got '" +
            request.schedule + "'";
    return std::nullopt;
  }
  return readTimeline(request, error);
}

/// The mistake of a file that holds more activations than the request allows.
std::string checkFile(const TimelineRequest &request,
                      const Timeline &timeline) {
  if (std::string error = checkActivationBound(request.activations);
      !error.empty())
    return "'activations': " + error;
  std::string error = checkActivations(
      timeline, chunkActivations(request.activations, timeline.shape));
  return error.empty() ? "" : request.schedule + ": " + error;
}

/// The mistakes in `timeline`, at most a screenful.
std::vector<std::string> verified(const TimelineRequest &request,
                                  const Timeline &timeline) {
  constexpr size_t kMostShown = 20;
  std::vector<Violation> violations = verifyTimeline(timeline);
  std::vector<std::string> lines;
  for (size_t i = 0; i < violations.size() && i < kMostShown; ++i)
    lines.push_back(request.schedule + ": " + violations[i].str());
  if (violations.size() > kMostShown)
    lines.push_back(request.schedule + ": and " +
                    std::to_string(violations.size() - kMostShown) + " more");
  if (lines.empty() && isFile(request.schedule))
    if (std::string error = checkFile(request, timeline); !error.empty())
      lines.push_back(error);
  return lines;
}

/// Adds what the request says to a timeline of compute actions, or one that
/// has some of it already. Nothing, and an `error`, when parts of the request
/// conflict.
std::optional<Timeline> complete(const TimelineRequest &request,
                                 Timeline timeline, std::string &error) {
  if (request.unpipelined && !timeline.shape.hasUnpipelined) {
    std::optional<Timeline> whole = withUnpipelinedLayers(timeline, error);
    if (!whole)
      return std::nullopt;
    timeline = std::move(*whole);
  }
  bool gathers = hasAny(timeline, ActionKind::Unshard);
  if (request.communication && !hasCommunication(timeline))
    timeline = addCommunication(timeline, costsOf(request, timeline.shape));
  if (request.offload && !hasAny(timeline, ActionKind::Offload))
    timeline = offloadResiduals(
        timeline, std::vector<bool>(timeline.shape.chunks(), true), 1);
  if (!request.weightGather) {
    if (request.prefetch || (request.window && !gathers)) {
      error = request.prefetch ? "--prefetch" : "--window";
      error += " needs --weight-gather, got none";
      return std::nullopt;
    }
    if (request.window && *request.window < 1) {
      error = "expected a window of at least 1 chunk, got " +
              std::to_string(*request.window);
      return std::nullopt;
    }
    timeline.window = static_cast<int>(request.window.value_or(0));
    return timeline;
  }
  if (gathers) {
    error = "--weight-gather is for timelines without UNSHARD, got '" +
            std::string(nameOf(*request.weightGather)) + "' and '" +
            request.schedule + "', which has it";
    return std::nullopt;
  }
  if (*request.weightGather == GatherMode::PerLayer) {
    error = "--weight-gather per-layer needs the layers of a model, which a "
            "schedule has not";
    return std::nullopt;
  }
  return gatherWeights(
      timeline, {*request.weightGather, request.window, request.prefetch},
      error);
}

} // namespace

std::optional<RequestedTimeline>
requestedTimeline(const TimelineRequest &request,
                  std::vector<std::string> &errors) {
  std::string search, error;
  std::optional<Timeline> timeline = timelineOf(request, search, error);
  if (timeline)
    errors = verified(request, *timeline);
  if (timeline && errors.empty()) {
    timeline = complete(request, std::move(*timeline), error);
    if (timeline)
      errors = verified(request, *timeline);
  }
  if (!timeline)
    errors = {error};
  if (!errors.empty())
    return std::nullopt;
  CostTable costs = costsOf(request, timeline->shape);
  return RequestedTimeline{std::move(*timeline), std::move(costs),
                           std::move(search)};
}

} // namespace rota
