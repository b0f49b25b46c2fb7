// SPDX-License-Identifier: Apache-2.0
//
// What a search needs to know of each schedule, read off timelines that it
// makes.
#ifndef ROTA_TOOLS_PLANNER_SEARCH_SCHEDULEFORMS_H
#define ROTA_TOOLS_PLANNER_SEARCH_SCHEDULEFORMS_H

#include "passes/pipeline/schedules/Schedules.h"

namespace rota {

/// A schedule for some number of stages, one or more, and of repeats.
struct ScheduleForm {
  const pipe::Schedule *schedule = nullptr;
  bool splitsBackward = false; // by itself
  /// Whether a rank holds more activations when there are more microbatches.
  bool growsWithMicrobatches = false;
};

/// The schedules that exist for one stage or several, with one chunk on a rank
/// or several, and whose orders differ, on one stage for one microbatch or for
/// several. Schedules that search are left out.
std::vector<ScheduleForm> scheduleForms(bool hasStages, bool hasRepeats,
                                        bool hasMicrobatches);

/// The form of a schedule by name; none where it does not exist for that.
std::optional<ScheduleForm> scheduleForm(std::string_view name, bool hasStages,
                                         bool hasRepeats);

/// Whether the schedule exists for the shape, which has its placement.
bool takesShape(const pipe::Schedule &schedule, const pipe::Shape &shape);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_SEARCH_SCHEDULEFORMS_H
