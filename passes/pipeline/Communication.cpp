// SPDX-License-Identifier: Apache-2.0
//
// Places sends and receives by the times of a simulation in unit slots.
#include "passes/pipeline/Communication.h"

#include "passes/pipeline/Simulator.h"

#include <algorithm>
#include <tuple>

namespace rota::pipe {
namespace {

/// A communication action to stand before the rank's compute action `position`.
struct Insertion {
  size_t position;
  double time; // orders insertions at one position
  Action action;
};

/// Where a rank stands at `time`: the number of actions that have ended.
size_t positionAt(const std::vector<Span> &spans, double time) {
  return std::upper_bound(
             spans.begin(), spans.end(), time,
             [](double t, const Span &span) { return t < span.end; }) -
         spans.begin();
}

} // namespace

Timeline addCommunication(const Timeline &timeline) {
  const Shape &shape = timeline.shape;
  std::optional<Simulation> simulation = simulate(timeline, CostTable());
  std::vector<std::vector<Insertion>> insertions(timeline.ranks.size());
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
      const Action &action = timeline.ranks[rank][i];
      bool forward = action.kind == ActionKind::Forward;
      if (action.kind == ActionKind::BackwardWeight ||
          !(forward ? shape.sendsForward(action.chunk)
                    : shape.sendsBackward(action.chunk)))
        continue;
      double end = simulation->spans[rank][i].end;
      double leaves = end + timeline.delay - 1;
      insertions[rank].push_back(
          {positionAt(simulation->spans[rank], leaves),
           leaves,
           {action.chunk,
            forward ? ActionKind::SendForward : ActionKind::SendBackward,
            action.microbatch}});
      int reader = action.chunk + (forward ? 1 : -1);
      int peer = shape.rankOf(reader);
      insertions[peer].push_back(
          {positionAt(simulation->spans[peer], end),
           end,
           {reader,
            forward ? ActionKind::RecvForward : ActionKind::RecvBackward,
            action.microbatch}});
    }
  Timeline result{shape, {}, timeline.delay};
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    std::vector<Insertion> &row = insertions[rank];
    auto key = [](const Insertion &insertion) {
      const Action &action = insertion.action;
      return std::tuple(insertion.position, insertion.time, action.kind,
                        action.chunk, action.microbatch);
    };
    std::sort(row.begin(), row.end(),
              [&](const Insertion &a, const Insertion &b) {
                return key(a) < key(b);
              });
    std::vector<Action> &out = result.ranks.emplace_back();
    auto next = row.begin();
    for (size_t i = 0; i <= timeline.ranks[rank].size(); ++i) {
      for (; next != row.end() && next->position == i; ++next)
        out.push_back(next->action);
      if (i < timeline.ranks[rank].size())
        out.push_back(timeline.ranks[rank][i]);
    }
  }
  return result;
}

} // namespace rota::pipe
