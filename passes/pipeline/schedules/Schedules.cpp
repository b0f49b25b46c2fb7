// SPDX-License-Identifier: Apache-2.0
//
// The table of schedules and the checks that all of them share.
#include "passes/pipeline/schedules/Schedules.h"

#include "passes/pipeline/timeline/UnpipelinedLayers.h"

namespace rota::pipe {

const std::vector<Schedule> &allSchedules() {
  static const std::vector<Schedule> schedules = {
      {"gpipe", "all forwards, then all backwards", generateGPipe},
      {"circular",
       "gpipe over several repeats, microbatches a multiple of stages",
       generateCircular},
      {"1f1b", "one forward, one backward; one repeat", generateOneFOneB},
      {"interleaved-1f1b", "1f1b over several repeats",
       generateInterleavedOneFOneB},
  };
  return schedules;
}

std::string scheduleNames() {
  std::string names;
  for (const Schedule &schedule : allSchedules())
    names += (names.empty() ? "" : ", ") + std::string(schedule.name);
  return names;
}

std::optional<Timeline> makeTimeline(std::string_view name,
                                     const ScheduleRequest &request,
                                     std::string &error) {
  const Schedule *found = nullptr;
  for (const Schedule &schedule : allSchedules())
    if (schedule.name == name)
      found = &schedule;
  if (!found) {
    error = "unknown schedule '" + std::string(name) + "': expected one of " +
            scheduleNames() + ", or a file that ends in .csv";
    return std::nullopt;
  }
  error = checkShape(request.shape);
  if (!error.empty())
    return std::nullopt;
  if (request.delay < 1 || request.delay > kOutgoingBuffers) {
    error = "expected a delay of 1 or 2, got " + std::to_string(request.delay);
    return std::nullopt;
  }
  if (request.delay > 1 && name != "circular") {
    error = "a delay of " + std::to_string(request.delay) +
            " exists for the circular schedule alone, got '" +
            std::string(name) + "'";
    return std::nullopt;
  }
  std::optional<Timeline> timeline = found->generate(request, error);
  if (timeline && request.shape.outer)
    timeline = *addUnpipelinedLayers(*timeline);
  if (timeline && request.splitBackward)
    return splitBackward(*timeline);
  return timeline;
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
