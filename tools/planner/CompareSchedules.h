// SPDX-License-Identifier: Apache-2.0
//
// Several schedules for the same numbers.
#ifndef ROTA_TOOLS_PLANNER_COMPARESCHEDULES_H
#define ROTA_TOOLS_PLANNER_COMPARESCHEDULES_H

#include "passes/pipeline/drawing/Comparison.h"
#include "tools/planner/RequestedTimeline.h"

namespace rota {

/// The schedules for one number of microbatches.
struct ScheduleComparison {
  std::vector<pipe::ComparedSchedule> rows;
  std::vector<std::string> searches; // RequestedTimeline::search, by row
};

/// Compares the schedules called `names` with the numbers of `request`, which
/// has stages and microbatches, and no name. Schedules that demand a placement
/// or a number of chunks have theirs, the others those of the request, whose
/// costs are those of all layers of a rank. Where the request leaves open
/// whether a rank has one chunk or two, or whether backwards are split, a
/// schedule that searches takes what makes the step shortest. A schedule that
/// does not exist for the numbers is a row with an error.
ScheduleComparison compareSchedules(const TimelineRequest &request,
                                    const std::vector<std::string> &names);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_COMPARESCHEDULES_H
