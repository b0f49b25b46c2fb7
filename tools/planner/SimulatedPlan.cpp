// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/SimulatedPlan.h"

#include "runtime/program/MessageClock.h"

namespace rota {
namespace {

const char *streamOf(const std::vector<Action> &row, size_t position) {
  ActionKind kind = row[position].kind;
  if (isAsynchronous(kind))
    return toString(kind);
  return pipe::endsPair(row, position) ? "pair" : "compute";
}

/// The times of all messages, by stage and position; other actions have none.
class MessageTimes {
public:
  MessageTimes(const Plan &plan, const pipe::Simulation &simulation,
               double latency)
      : latency(latency), clock(latency) {
    for (size_t s = 0; s < plan.timeline.ranks.size(); ++s) {
      const std::vector<Action> &row = plan.timeline.ranks[s];
      std::vector<MessageClock::Message> &messages = stages.emplace_back();
      for (size_t i = 0; i < row.size(); ++i)
        messages.push_back(
            isMessage(row[i].kind)
                ? clock.add(row[i].kind, int(s),
                            plan.program.stages[s].templateOf(int(i)).peer,
                            simulation.spans[s][i].start)
                : MessageClock::Message());
    }
  }

  TimeSpan of(size_t stage, size_t position) const {
    double end = MessageClock::arrival(stages[stage][position]);
    return {end - latency, end};
  }

private:
  double latency;
  MessageClock clock;
  std::vector<std::vector<MessageClock::Message>> stages;
};

} // namespace

pipe::CostTable costTable(const Plan &plan) {
  return TransferEstimates(plan.costs, plan.program, plan.machine)
      .costTable(plan.timeline.shape.chunks());
}

std::optional<SimulatedPlan> simulatePlan(const Plan &plan) {
  pipe::CostTable costs = costTable(plan);
  auto simulation = pipe::simulate(plan.timeline, costs);
  if (!simulation)
    return std::nullopt;
  MessageTimes messages(plan, *simulation, costs.send);
  SimulatedPlan result;
  for (size_t s = 0; s < plan.timeline.ranks.size(); ++s) {
    const std::vector<Action> &row = plan.timeline.ranks[s];
    std::vector<TimedAction> &timed = result.stages.emplace_back();
    for (size_t i = 0; i < row.size(); ++i)
      timed.push_back({row[i], streamOf(row, i),
                       isMessage(row[i].kind) ? messages.of(s, i)
                                              : simulation->spans[s][i]});
  }
  result.simulation = std::move(*simulation);
  return result;
}

} // namespace rota
