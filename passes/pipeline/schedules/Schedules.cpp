// SPDX-License-Identifier: Apache-2.0
//
// The table of schedules and the checks that all of them share.
#include "passes/pipeline/schedules/Schedules.h"

#include "passes/pipeline/drawing/Table.h"
#include "passes/pipeline/timeline/UnpipelinedLayers.h"
#include "runtime/text/Text.h"

namespace rota::pipe {
namespace {

/// A rule of one repeat leaves a single stage free: its chunks follow one
/// another as if they were one.
bool fixesRepeats(const ShapeRule &rule, int stages) {
  return rule.repeats > 1 || (rule.repeats == 1 && stages > 1);
}

/// The mistake in `shape` for `schedule`, or an empty string.
std::string checkRule(const Schedule &schedule, const Shape &shape) {
  const ShapeRule &rule = schedule.rule;
  std::string needs = "the " + std::string(schedule.name) + " schedule needs ";
  std::string advice =
      *rule.advice ? " (" + std::string(rule.advice) + ")" : std::string();
  if (rule.placement && shape.placement != *rule.placement && shape.stages > 1)
    return needs + "the placement '" + nameOf(*rule.placement) + "', got '" +
           nameOf(shape.placement) + "'" + advice;
  if (fixesRepeats(rule, shape.stages) && shape.repeats != rule.repeats)
    return needs + counted(rule.repeats, "repeat") + ", got " +
           counted(shape.repeats, "repeat") + " on " +
           counted(shape.stages, "stage") + advice;
  if (rule.microbatches == MicrobatchRule::MultipleOfStages &&
      shape.microbatches % shape.stages != 0)
    return "expected microbatches to be a multiple of stages for the " +
           std::string(schedule.name) + " schedule, got " +
           std::to_string(shape.microbatches) + " and " +
           std::to_string(shape.stages);
  if (rule.microbatches == MicrobatchRule::TwiceStages &&
      shape.microbatches < 2 * int64_t(shape.stages))
    return "expected at least 2 * stages microbatches for the " +
           std::string(schedule.name) + " schedule, got " +
           counted(shape.microbatches, "microbatch", "es") + " and " +
           counted(shape.stages, "stage");
  return "";
}

} // namespace

const std::vector<Schedule> &allSchedules() {
  static const std::vector<Schedule> schedules = {
#define ROTA_SCHEDULE(name) schedule##name,
#include "passes/pipeline/schedules/Schedules.def"
#undef ROTA_SCHEDULE
  };
  return schedules;
}

const Schedule *findSchedule(std::string_view name) {
  for (const Schedule &schedule : allSchedules())
    if (schedule.name == name)
      return &schedule;
  return nullptr;
}

static std::string namesOf(bool (*isListed)(const Schedule &)) {
  std::string names;
  for (const Schedule &schedule : allSchedules())
    if (isListed(schedule))
      names += (names.empty() ? "" : ", ") + std::string(schedule.name);
  return names;
}

std::string scheduleNames() {
  return namesOf([](const Schedule &) { return true; });
}

std::string namesWithPairs() {
  return namesOf([](const Schedule &schedule) { return schedule.hasPairs; });
}

static std::string namesWithDelay() {
  return namesOf(
      [](const Schedule &schedule) { return schedule.maxDelay > 1; });
}

Shape demandedShape(std::string_view name, Shape shape) {
  const Schedule *schedule = findSchedule(name);
  if (!schedule)
    return shape;
  shape.placement = schedule->rule.placement.value_or(shape.placement);
  if (fixesRepeats(schedule->rule, shape.stages))
    shape.repeats = schedule->rule.repeats;
  return shape;
}

std::string checkActivations(const Timeline &timeline, int bound) {
  if (bound == 0)
    return "";
  std::optional<Simulation> simulation = simulate(timeline, CostTable());
  const std::vector<RankUsage> &ranks = simulation->ranks;
  auto most = std::ranges::max_element(ranks, {}, &RankUsage::peakLive);
  if (most->peakLive <= bound)
    return "";
  const Shape &shape = timeline.shape;
  return "expected a schedule with at most " +
         numberCell(wholeActivations(bound, shape)) +
         " activations on each rank, got " +
         numberCell(wholeActivations(most->peakLive, shape)) + " on rank " +
         std::to_string(most - ranks.begin()) + ", which holds most";
}

std::string checkActivationBound(double activations) {
  if (activations == 0 || (activations >= 1 && activations <= kMaxActions))
    return "";
  return "expected 0 or a number from 1 to " + std::to_string(kMaxActions) +
         ", got " + numberCell(activations);
}

std::optional<Timeline> makeTimeline(std::string_view name,
                                     const ScheduleRequest &request,
                                     std::string &error) {
  const Schedule *found = findSchedule(name);
  if (!found) {
    error = "unknown schedule '" + std::string(name) + "': expected one of " +
            scheduleNames() + ", or a file that ends in .csv";
    return std::nullopt;
  }
  error = checkShape(request.shape);
  if (error.empty())
    error = checkRule(*found, request.shape);
  if (!error.empty())
    return std::nullopt;
  if (request.pairs && !found->hasPairs) {
    error = "expected a schedule with pairs (" + namesWithPairs() + "), got '" +
            std::string(name) + "'";
    return std::nullopt;
  }
  if (request.delay < 1 || request.delay > kOutgoingBuffers) {
    error = "expected a delay of 1 or 2, got " + std::to_string(request.delay);
    return std::nullopt;
  }
  if (request.delay > found->maxDelay) {
    error = "expected a schedule with a delay of " +
            std::to_string(request.delay) + " (" + namesWithDelay() +
            "), got '" + std::string(name) + "'";
    return std::nullopt;
  }
  std::optional<Timeline> timeline = found->generate(request, error);
  if (!timeline || found->isSearch)
    return timeline;
  if (!request.pairs)
    dropPairs(*timeline);
  if (request.shape.hasUnpipelined)
    timeline = *addUnpipelinedLayers(*timeline);
  if (request.splitBackward && !hasAny(*timeline, ActionKind::BackwardInput))
    timeline = splitBackward(*timeline);
  error = checkActivations(*timeline, request.activations);
  return error.empty() ? timeline : std::nullopt;
}

std::optional<int> fewestMicrobatches(std::string_view name,
                                      ScheduleRequest request) {
  std::string error;
  int stages = request.shape.stages;
  for (int count : {1, stages, 2 * stages}) {
    request.shape.microbatches = count;
    if (makeTimeline(name, request, error))
      return count;
  }
  return std::nullopt;
}

} // namespace rota::pipe
