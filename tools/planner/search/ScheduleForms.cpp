// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/search/ScheduleForms.h"

#include "tools/planner/MixedPlans.h"

#include <algorithm>
#include <numeric>

namespace rota {
namespace {

/// The shape in which orders are compared.
pipe::Shape exampleShape(const pipe::Schedule &schedule, bool hasStages,
                         bool hasRepeats, int microbatches) {
  pipe::Shape shape;
  shape.stages = hasStages ? 4 : 1;
  shape.repeats = hasRepeats ? 2 : 1;
  shape.microbatches = microbatches;
  shape.placement = schedule.rule.placement.value_or(pipe::Placement::Loop);
  return shape;
}

std::optional<pipe::Timeline> example(const pipe::Schedule &schedule,
                                      const pipe::Shape &shape) {
  pipe::ScheduleRequest request;
  request.shape = shape;
  std::string error;
  return pipe::makeTimeline(schedule.name, request, error);
}

int heldActivations(const pipe::Timeline &timeline) {
  std::vector<int> live = mostLive(timeline);
  return std::accumulate(live.begin(), live.end(), 0);
}

} // namespace

std::optional<ScheduleForm> scheduleForm(std::string_view name, bool hasStages,
                                         bool hasRepeats) {
  const pipe::Schedule *schedule = pipe::findSchedule(name);
  if (!schedule)
    return std::nullopt;
  if (schedule->isSearch)
    return ScheduleForm{schedule};
  auto few =
      example(*schedule, exampleShape(*schedule, hasStages, hasRepeats, 16));
  auto many =
      example(*schedule, exampleShape(*schedule, hasStages, hasRepeats, 32));
  if (!few || !many)
    return std::nullopt;
  return ScheduleForm{schedule,
                      pipe::hasAny(*few, pipe::ActionKind::BackwardInput),
                      heldActivations(*many) > heldActivations(*few)};
}

std::vector<ScheduleForm> scheduleForms(bool hasStages, bool hasRepeats,
                                        bool hasMicrobatches) {
  std::vector<ScheduleForm> forms;
  std::vector<pipe::ActionRows> orders;
  for (const pipe::Schedule &schedule : pipe::allSchedules()) {
    auto form = scheduleForm(schedule.name, hasStages, hasRepeats);
    if (!form || schedule.isSearch)
      continue;
    int microbatches = hasMicrobatches || hasStages ? 16 : 1;
    auto timeline = example(
        schedule, exampleShape(schedule, hasStages, hasRepeats, microbatches));
    if (!timeline)
      continue;
    if (std::ranges::find(orders, timeline->ranks) != orders.end())
      continue;
    orders.push_back(timeline->ranks);
    forms.push_back(*form);
  }
  return forms;
}

bool takesShape(const pipe::Schedule &schedule, const pipe::Shape &shape) {
  const pipe::ShapeRule &rule = schedule.rule;
  if (!pipe::checkShape(shape).empty())
    return false;
  if (rule.repeats > 1 && shape.repeats != rule.repeats)
    return false;
  if (rule.repeats == 1 && shape.stages > 1 && shape.repeats != 1)
    return false;
  switch (rule.microbatches) {
  case pipe::MicrobatchRule::Any:
    return true;
  case pipe::MicrobatchRule::MultipleOfStages:
    return shape.microbatches % shape.stages == 0;
  case pipe::MicrobatchRule::TwiceStages:
    return shape.microbatches >= 2 * shape.stages;
  }
  return false;
}

} // namespace rota
