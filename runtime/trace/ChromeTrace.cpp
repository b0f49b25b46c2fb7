// SPDX-License-Identifier: Apache-2.0
#include "runtime/trace/ChromeTrace.h"
#include "runtime/trace/PlannedTimes.h"
#include "runtime/trace/TraceWriter.h"

#include <algorithm>
#include <map>
#include <set>

namespace rota {

namespace {

constexpr const char *kLanes[] = {"",         " weights",  " gradients",
                                  " forward", " backward", " copies",
                                  " pair",    " sums",     " updates"};
constexpr int kLaneCount = std::size(kLanes);

/// The second half of a pair has a lane of its own, as it runs beside the
/// first.
int laneOf(const Stage &stage, int action) {
  if (action > 0 && stage.templateOf(action - 1).startsPair)
    return 6;
  switch (stage.kindOf(action)) {
  case ActionKind::Unshard:
    return 1;
  case ActionKind::ReduceGrad:
    return 2;
  case ActionKind::SumGrad:
    return 7;
  case ActionKind::Refresh:
    return 8;
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

/// The time of a training run of the timelines, all ranks together.
struct RunTimes {
  double begin = 0.0, computing = 0.0;
  std::map<int, int> ranks; // the stage of each
};

class Drawing {
public:
  explicit Drawing(const Program &program) : program(program) {}

  std::string draw(const std::vector<TraceEvent> &events) {
    for (const TraceEvent &event : events)
      add(event, event.training ? "training" : "evaluation", 0);
    if (auto clock = plannedTimes(program))
      for (const auto &[run, times] : trainingRuns(events))
        addPlanned(*clock, run, times);
    return trace.text();
  }

private:
  /// `plan`: 1 for the lanes of planned times.
  void add(const TraceEvent &event, const char *category, int plan) {
    const Stage &stage = program.stages[event.stage];
    const ActionTemplate &actionTemplate = stage.templateOf(event.action);
    int microbatch = stage.actions[event.action].microbatch;
    int kind = laneOf(stage, event.action);
    int lane = 2 * (event.rank * kLaneCount + kind) + plan;
    if (lanes.insert(lane).second)
      trace.nameLane(lane,
                     "rank " + std::to_string(event.rank) +
                         (plan ? " planned" : "") + kLanes[kind],
                     lane);
    TracedAction action{
        toString(Action{actionTemplate.chunk, actionTemplate.kind, microbatch}),
        category, actionTemplate.chunk,
        hasMicrobatch(actionTemplate.kind) ? microbatch : -1, event.run};
    trace.addSlice(lane, action, event.begin * 1e6, event.end * 1e6);
  }

  std::map<int, RunTimes>
  trainingRuns(const std::vector<TraceEvent> &events) const {
    std::map<int, RunTimes> runs;
    for (const TraceEvent &event : events) {
      if (!event.training)
        continue;
      auto [entry, isNew] = runs.try_emplace(event.run);
      RunTimes &run = entry->second;
      run.begin = isNew ? event.begin : std::min(run.begin, event.begin);
      run.ranks[event.rank] = event.stage;
      if (isCompute(program.stages[event.stage].kindOf(event.action)))
        run.computing += event.end - event.begin;
    }
    return runs;
  }

  void addPlanned(const Clock &clock, int run, const RunTimes &times) {
    double planned = 0.0;
    for (auto [rank, stage] : times.ranks)
      for (size_t a = 0; a < clock.end[stage].size(); ++a)
        if (isCompute(program.stages[stage].kindOf(static_cast<int>(a))))
          planned += clock.end[stage][a] - clock.begin[stage][a];
    if (planned <= 0.0)
      return;
    double scale = times.computing / planned;
    for (auto [rank, stage] : times.ranks)
      for (size_t a = 0; a < clock.end[stage].size(); ++a)
        if (double begin = clock.begin[stage][a], end = clock.end[stage][a];
            end > begin)
          add({rank, stage, static_cast<int>(a), run, true,
               times.begin + scale * begin, times.begin + scale * end},
              "planned", 1);
  }

  const Program &program;
  TraceWriter trace;
  std::set<int> lanes;
};

} // namespace

std::string chromeTrace(const Program &program,
                        const std::vector<TraceEvent> &events) {
  return Drawing(program).draw(events);
}

} // namespace rota
