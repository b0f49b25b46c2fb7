// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/ChromeTrace.h"

#include <nlohmann/json.hpp>

#include <set>

using nlohmann::ordered_json;

namespace rota {

static constexpr const char *kLanes[] = {"",         " weights",  " gradients",
                                         " forward", " backward", " copies"};
static constexpr int kLaneCount = std::size(kLanes);

static int laneOf(ActionKind kind) {
  switch (kind) {
  case ActionKind::Unshard:
    return 1;
  case ActionKind::ReduceGrad:
    return 2;
  case ActionKind::SendForward:
  case ActionKind::RecvForward:
    return 3;
  case ActionKind::SendBackward:
  case ActionKind::RecvBackward:
    return 4;
  case ActionKind::Offload:
  case ActionKind::Fetch:
    return 5;
  default:
    return 0;
  }
}

std::string chromeTrace(const Program &program,
                        const std::vector<TraceEvent> &events) {
  ordered_json list = ordered_json::array();
  std::set<int> lanes;
  for (const TraceEvent &event : events) {
    const Stage &stage = program.stages[event.stage];
    const ActionTemplate &action = stage.templateOf(event.action);
    int lane = event.rank * kLaneCount + laneOf(action.kind);
    if (lanes.insert(lane).second)
      list.push_back({{"ph", "M"},
                      {"name", "thread_name"},
                      {"pid", 0},
                      {"tid", lane},
                      {"args",
                       {{"name", "rank " + std::to_string(event.rank) +
                                     kLanes[laneOf(action.kind)]}}}});
    list.push_back(
        {{"ph", "X"},
         {"name", std::to_string(action.chunk) + toString(action.kind) +
                      std::to_string(stage.actions[event.action].microbatch)},
         {"cat", event.training ? "training" : "evaluation"},
         {"pid", 0},
         {"tid", lane},
         {"ts", event.begin * 1e6},
         {"dur", (event.end - event.begin) * 1e6}});
  }
  return ordered_json({{"traceEvents", list}}).dump();
}

} // namespace rota
