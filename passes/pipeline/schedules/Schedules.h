// SPDX-License-Identifier: Apache-2.0
//
// The schedules by name. A generator only writes F and B in order for each
// rank; splitting, communication and verification are common to all schedules.
// Every generator takes each chunk's backwards in ascending microbatch order,
// so that gradients accumulate in the same order under every schedule.
#ifndef ROTA_PASSES_PIPELINE_SCHEDULES_SCHEDULES_H
#define ROTA_PASSES_PIPELINE_SCHEDULES_SCHEDULES_H

#include "ir/pipe/Timeline.h"

namespace rota::pipe {

/// The parameters of a schedule.
struct ScheduleRequest {
  Shape shape;
  int delay = 1;              // d: 1 or 2; see Timeline
  bool splitBackward = false; // I and W instead of B
};

/// Writes the timeline of a checked shape, without its unpipelined chunk. When
/// the schedule does not exist for the shape, `error` names the numbers and the
/// rule.
using Generator = std::optional<Timeline> (*)(const ScheduleRequest &request,
                                              std::string &error);

struct Schedule {
  const char *name;
  const char *description; // a clause, for help
  Generator generate;
};

/// All schedules, simplest first.
const std::vector<Schedule> &allSchedules();

/// "gpipe, circular, ..." for help and messages.
std::string scheduleNames();

/// Generates the schedule called `name`, adds the unpipelined chunk that the
/// shape may have, and splits the backwards where the request says so. Nothing
/// and an `error` when the name is unknown, a number of the request is out of
/// range, or the schedule does not exist for the numbers.
std::optional<Timeline> makeTimeline(std::string_view name,
                                     const ScheduleRequest &request,
                                     std::string &error);

/// The fewest microbatches, out of 1, S and 2*S, with which the schedule exists
/// for the rest of `request`. Nothing when it exists with none of them.
std::optional<int> fewestMicrobatches(std::string_view name,
                                      ScheduleRequest request);

std::optional<Timeline> generateGPipe(const ScheduleRequest &request,
                                      std::string &error);
std::optional<Timeline> generateCircular(const ScheduleRequest &request,
                                         std::string &error);
std::optional<Timeline> generateOneFOneB(const ScheduleRequest &request,
                                         std::string &error);
std::optional<Timeline>
generateInterleavedOneFOneB(const ScheduleRequest &request, std::string &error);

/// Replaces each B by I and W. A rank runs W when it would be idle otherwise,
/// and before an F that would make it hold more activations than with B. So
/// bubbles shrink and peak memory does not grow. The W of a chunk keep the
/// order of its B.
Timeline splitBackward(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SCHEDULES_SCHEDULES_H
