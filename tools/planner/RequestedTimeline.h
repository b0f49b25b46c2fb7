// SPDX-License-Identifier: Apache-2.0
//
// A timeline that is asked for by name or file and by numbers, without a model.
#ifndef ROTA_TOOLS_PLANNER_REQUESTEDTIMELINE_H
#define ROTA_TOOLS_PLANNER_REQUESTEDTIMELINE_H

#include "passes/pipeline/timeline/Simulator.h"
#include "passes/pipeline/timeline/WeightWindows.h"

namespace rota {

/// A request for a timeline. A number that is not given is that of the file or
/// the one that the schedule demands, else 1.
struct TimelineRequest {
  std::string schedule; // a name, or a path that ends in .csv
  std::optional<int> stages, repeats, microbatches;
  std::optional<pipe::Placement> placement;
  // Fields of ScheduleRequest.
  int delay = 1;
  std::optional<bool> splitBackward;
  bool pairs = false;
  double activations = 0; // wholeActivations; 0: no bound
  // Parts to add where the timeline has none.
  bool unpipelined = false, communication = false, offload = false;
  std::optional<pipe::GatherMode> weightGather;
  std::optional<int64_t> window, prefetch; // as in GatherRequest
  pipe::CostTable costs;
  bool costsAreOfRanks = false; // all layers of a rank, not a chunk's
};

struct RequestedTimeline {
  pipe::Timeline timeline;
  pipe::CostTable costs; // by action
  std::string search;    // what a search has tried; empty: there was none
};

/// Makes or reads the timeline, adds what the request says, and verifies it. A
/// schedule that searches chooses the chunks of a rank, one or two, and whole
/// or split backwards where the request does not say them; costs are then those
/// of ranks where it does not say the chunks. Nothing, and `errors`, at most a
/// screenful of lines, when the timeline does not exist or breaks a rule.
std::optional<RequestedTimeline>
requestedTimeline(const TimelineRequest &request,
                  std::vector<std::string> &errors);

} // namespace rota

#endif // ROTA_TOOLS_PLANNER_REQUESTEDTIMELINE_H
