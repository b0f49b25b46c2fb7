// SPDX-License-Identifier: Apache-2.0
//
// See Problem.h.
#include "passes/pipeline/search/Problem.h"

#include <climits>

namespace rota::pipe {

Problem::Problem(const Shape &shape, const CostTable &costs, bool split,
                 int activations)
    : shape(shape), chunks(shape.stages * shape.repeats),
      microbatches(shape.microbatches), split(split),
      bound(activations ? activations : INT_MAX), rows(shape.stages),
      work(shape.stages, 0) {
  for (int lane = 0; lane < (split ? 3 : 2) * chunks; ++lane) {
    int rank = shape.rankOf(chunkOf(lane));
    bool isRemote = lane > 0 && !isWeight(lane) && rankOf.back() != rank;
    rankOf.push_back(rank);
    cost.push_back(costs.of(actionOf(lane, 0)));
    latency.push_back(isRemote ? costs.send : 0);
    rows[rank].push_back(lane);
    work[rank] += cost.back();
  }
}

Action Problem::actionOf(int lane, int microbatch) const {
  ActionKind kind = isWeight(lane)    ? ActionKind::BackwardWeight
                    : isForward(lane) ? ActionKind::Forward
                    : split           ? ActionKind::BackwardInput
                                      : ActionKind::Backward;
  return {chunkOf(lane), kind, microbatch};
}

Timeline timelineOf(const Problem &problem, const Order &order) {
  Timeline timeline{problem.shape, {}};
  std::vector<int> next(problem.lanes());
  for (const std::vector<int> &row : order) {
    std::vector<Action> &actions = timeline.ranks.emplace_back();
    actions.reserve(row.size());
    for (int lane : row)
      actions.push_back(problem.actionOf(lane, next[lane]++));
  }
  return timeline;
}

std::optional<Order> orderOf(const Problem &problem, const Timeline &timeline) {
  Order order;
  std::vector<int> next(problem.lanes());
  for (const std::vector<Action> &actions : timeline.ranks) {
    std::vector<int> &row = order.emplace_back();
    row.reserve(actions.size());
    for (const Action &action : actions) {
      int lane = action.kind == ActionKind::Forward ? action.chunk
                 : action.kind == ActionKind::BackwardWeight
                     ? problem.weightOf(action.chunk)
                     : problem.backwardOf(action.chunk);
      if (lane >= problem.lanes() ||
          problem.actionOf(lane, next[lane]++) != action)
        return std::nullopt;
      row.push_back(lane);
    }
  }
  return order;
}

} // namespace rota::pipe
