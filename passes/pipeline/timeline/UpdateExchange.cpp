// SPDX-License-Identifier: Apache-2.0
//
// See UpdateExchange.h.
#include "passes/pipeline/timeline/UpdateExchange.h"

#include "passes/pipeline/timeline/Insertions.h"

#include <algorithm>

namespace rota::pipe {
namespace {

/// The SUM_GRADs to insert before each use, and last, after all uses.
Insertions placeSums(const std::vector<Action> &uses, const Shape &shape,
                     bool reduces, int rounds) {
  Insertions places(uses.size() + 1);
  std::vector<WholeGradient> whole = wholeGradients(uses, shape);
  std::erase_if(whole, [&](const WholeGradient &gradient) {
    return shape.isUnpipelined(gradient.chunk);
  });
  int count = int(whole.size());
  for (int turn = 0; turn < count + rounds + reduces; ++turn)
    for (int round = 0; round < rounds; ++round)
      if (int number = turn - round - reduces; number >= 0 && number < count) {
        int last = whole[std::min(turn, count - 1)].last;
        places[last + 1].push_back({whole[number].chunk, ActionKind::SumGrad});
      }
  return places;
}

/// Inserts right before compute actions.
std::vector<Action> insertBefore(const std::vector<Action> &row,
                                 const Insertions &insertions) {
  std::vector<Action> out;
  size_t use = 0;
  for (const Action &action : row) {
    if (isCompute(action.kind)) {
      out.insert(out.end(), insertions[use].begin(), insertions[use].end());
      ++use;
    }
    out.push_back(action);
  }
  out.insert(out.end(), insertions[use].begin(), insertions[use].end());
  return out;
}

/// A REFRESH for each chunk of the pipeline, in the order of first uses.
std::vector<Action> refreshes(const std::vector<Action> &uses,
                              const Shape &shape) {
  std::vector<Action> result;
  std::vector<bool> isFound(shape.chunks());
  for (const Action &use : uses) {
    if (!shape.isUnpipelined(use.chunk) && !isFound[use.chunk])
      result.push_back({use.chunk, ActionKind::Refresh});
    isFound[use.chunk] = true;
  }
  return result;
}

} // namespace

Timeline exchangeUpdates(const Timeline &timeline, ExchangeRequest request) {
  const Shape &shape = timeline.shape;
  Timeline result = timeline;
  if (shape.chunks() == 1)
    return result;
  if (hasAny(timeline, ActionKind::SumGrad))
    request.rounds = 0;
  if (hasAny(timeline, ActionKind::Refresh))
    request.refreshes = false;
  bool reduces = hasAny(timeline, ActionKind::ReduceGrad);
  for (std::vector<Action> &row : result.ranks) {
    std::vector<Action> uses = computeOf(row);
    row = insertBefore(row, placeSums(uses, shape, reduces, request.rounds));
    if (request.refreshes) {
      std::vector<Action> first = refreshes(uses, shape);
      row.insert(row.begin(), first.begin(), first.end());
    }
  }
  return result;
}

} // namespace rota::pipe
