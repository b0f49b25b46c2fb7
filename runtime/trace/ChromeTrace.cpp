// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/ChromeTrace.h"
#include "runtime/trace/TraceWriter.h"

#include <set>

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
  TraceWriter trace;
  std::set<int> lanes;
  for (const TraceEvent &event : events) {
    const Stage &stage = program.stages[event.stage];
    const ActionTemplate &form = stage.templateOf(event.action);
    int microbatch = stage.actions[event.action].microbatch;
    int lane = event.rank * kLaneCount + laneOf(form.kind);
    if (lanes.insert(lane).second)
      trace.nameLane(lane,
                     "rank " + std::to_string(event.rank) +
                         kLanes[laneOf(form.kind)],
                     lane);
    TracedAction action{std::to_string(form.chunk) + toString(form.kind) +
                            std::to_string(microbatch),
                        event.training ? "training" : "evaluation", form.chunk,
                        microbatch};
    trace.addSlice(lane, action, event.begin * 1e6, event.end * 1e6);
  }
  return trace.text();
}

} // namespace rota
