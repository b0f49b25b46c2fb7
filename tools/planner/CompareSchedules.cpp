// SPDX-License-Identifier: Apache-2.0
//
// See CompareSchedules.h.
#include "tools/planner/CompareSchedules.h"

#include "passes/pipeline/search/Search.h"

#include <cmath>

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

/// The forms that a search may choose from: those that the request leaves open.
/// They share the work of one search.
static std::vector<TimelineRequest> openForms(const TimelineRequest &request,
                                              const std::string &name) {
  std::vector<TimelineRequest> forms;
  for (int repeats : {1, 2})
    for (bool split : {false, true}) {
      bool isFixed = request.repeats && repeats == 2; // once is enough
      if (isFixed || (request.splitBackward && split != *request.splitBackward))
        continue;
      TimelineRequest &own = forms.emplace_back(request);
      own.schedule = name;
      own.repeats = request.repeats.value_or(repeats);
      own.splitBackward = split;
    }
  for (TimelineRequest &own : forms) {
    Shape shape{*own.stages, *own.repeats, *own.microbatches};
    int64_t actions = int64_t(3) * shape.chunks() * shape.microbatches;
    own.searchActions =
        std::min(kSearchActions, kSearchRuns * actions) / int64_t(forms.size());
    shape.hasUnpipelined = own.unpipelined;
    own.costs = costsOfChunks(shape, request.costs);
  }
  return forms;
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

/// Whether a row is better than another of the same schedule.
static bool isBetter(const ComparedSchedule &row,
                     const ComparedSchedule &other) {
  if (!row.error.empty() || !other.error.empty())
    return row.error.empty() && !other.error.empty();
  if (std::abs(row.makespan - other.makespan) > 1e-9 * other.makespan)
    return row.makespan < other.makespan;
  return row.peakActivations < other.peakActivations;
}

static Row searchedRow(const TimelineRequest &request,
                       const std::string &name) {
  std::optional<Row> best;
  for (const TimelineRequest &form : openForms(request, name)) {
    Row row = rowOf(form, request.costs);
    if (!row.second.empty())
      row.second = "repeats " + std::to_string(*form.repeats) + ", " +
                   (*form.splitBackward ? "split" : "whole") + " backwards, " +
                   row.second;
    if (!best || isBetter(row.first, best->first))
      best = std::move(row);
  }
  return *best;
}

ScheduleComparison compareSchedules(const TimelineRequest &request,
                                    const std::vector<std::string> &names) {
  ScheduleComparison comparison;
  for (const std::string &name : names) {
    auto [row, search] = isSearch(name)
                             ? searchedRow(request, name)
                             : rowOf(requestOf(request, name), request.costs);
    comparison.rows.push_back(std::move(row));
    comparison.searches.push_back(std::move(search));
  }
  return comparison;
}

} // namespace rota
