// SPDX-License-Identifier: Apache-2.0
//
// See CompareSchedules.h.
#include "tools/planner/CompareSchedules.h"

#include "passes/pipeline/schedules/Schedules.h"

namespace rota {

using namespace pipe;

/// `request` for the schedule or file called `name`.
static TimelineRequest requestOf(const TimelineRequest &request,
                                 const std::string &name) {
  TimelineRequest own = request;
  own.schedule = name;
  if (name.ends_with(".csv")) { // the file says both
    own.repeats.reset();
    own.placement.reset();
    return own;
  }
  Shape shape;
  shape.stages = *request.stages;
  shape.repeats = request.repeats.value_or(shape.repeats);
  shape.placement = request.placement.value_or(shape.placement);
  shape = demandedShape(name, shape);
  own.repeats = shape.repeats;
  if (request.placement)
    own.placement = shape.placement;
  return own;
}

ScheduleComparison compareSchedules(const TimelineRequest &request,
                                    const std::vector<std::string> &names) {
  ScheduleComparison comparison;
  for (const std::string &name : names) {
    std::vector<std::string> errors;
    auto made = requestedTimeline(requestOf(request, name), errors);
    comparison.searches.push_back(made ? made->search : "");
    if (made) {
      comparison.rows.push_back(compared(name, made->timeline, request.costs));
      continue;
    }
    ComparedSchedule &row = comparison.rows.emplace_back();
    row.name = name;
    row.error = errors.front();
    row.shape.stages = *request.stages;
    row.shape.microbatches = *request.microbatches;
  }
  return comparison;
}

} // namespace rota
