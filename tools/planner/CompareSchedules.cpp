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
  own.costsAreOfRanks = true;
  if (isSearch(name)) // it chooses what the request leaves open
    return own;
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

/// A row, and what the search for it has tried.
using Row = std::pair<ComparedSchedule, std::string>;

static Row rowOf(const TimelineRequest &request, const CostTable &costs) {
  std::vector<std::string> errors;
  if (auto made = requestedTimeline(request, errors))
    return {compared(request.schedule, made->timeline, costs), made->search};
  ComparedSchedule row;
  row.name = request.schedule;
  row.error = errors.front();
  row.shape.stages = *request.stages;
  row.shape.microbatches = *request.microbatches;
  return {row, ""};
}

ScheduleComparison compareSchedules(const TimelineRequest &request,
                                    const std::vector<std::string> &names) {
  ScheduleComparison comparison;
  for (const std::string &name : names) {
    auto [row, search] = rowOf(requestOf(request, name), request.costs);
    comparison.rows.push_back(std::move(row));
    comparison.searches.push_back(std::move(search));
  }
  return comparison;
}

} // namespace rota
