// SPDX-License-Identifier: Apache-2.0
//
// Places sends and receives by the times of a simulation without them.
#include "passes/pipeline/timeline/Communication.h"

#include "passes/pipeline/timeline/Insertions.h"

#include <algorithm>
#include <tuple>

namespace rota::pipe {
namespace {

/// A communication action to insert before the rank's compute action
/// `position`.
struct Insertion {
  size_t position;
  double time; // orders insertions at one position
  Action action;
};

/// The number of a rank's actions that have ended at `time`. The halves of a
/// pair end together, so no position is between them.
size_t positionAt(const std::vector<TimeSpan> &spans, double time) {
  return std::upper_bound(
             spans.begin(), spans.end(), time,
             [](double t, const TimeSpan &span) { return t < span.end; }) -
         spans.begin();
}

/// The costs of each chunk, none of them 0: so actions of a row end one after
/// the other, and a value's reader ends after its producer.
CostTable positiveCosts(const Shape &shape, const CostTable &costs) {
  CostTable result = costs;
  result.cores = 0;
  result.chunks.clear();
  double most = 0;
  for (int chunk = 0; chunk < shape.chunks(); ++chunk) {
    std::array<double, 4> &row = result.chunks.emplace_back();
    for (int kind = 0; kind < 4; ++kind) {
      row[kind] = costs.of({chunk, ActionKind(kind), 0});
      most = std::max(most, row[kind]);
    }
  }
  double least = most > 0 ? 1e-6 * most : 1;
  for (std::array<double, 4> &row : result.chunks)
    for (double &cost : row)
      cost = std::max(cost, least);
  return result;
}

/// The sends and receives of each rank, in their order in the row; positions
/// count compute actions.
std::vector<std::vector<Insertion>> placeMessages(const Timeline &timeline,
                                                  const CostTable &given) {
  const Shape &shape = timeline.shape;
  // A delay is counted in actions, which have one length only in unit slots.
  CostTable costs =
      timeline.delay > 1 ? CostTable() : positiveCosts(shape, given);
  std::optional<Simulation> simulation = simulate(timeline, costs);
  std::vector<std::vector<Insertion>> insertions(timeline.ranks.size());
  auto place = [&](int rank, double time, const Action &action) {
    insertions[rank].push_back(
        {positionAt(simulation->spans[rank], time), time, action});
  };
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
    for (size_t i = 0; i < timeline.ranks[rank].size(); ++i) {
      const Action &action = timeline.ranks[rank][i];
      int m = action.microbatch, reader = shape.consumerOf(action);
      if (reader == kNoChunk || shape.rankOf(reader, m) == int(rank))
        continue;
      bool forward = isForward(action.kind);
      double end = simulation->spans[rank][i].end;
      place(int(rank), end + (timeline.delay - 1),
            {action.chunk,
             forward ? ActionKind::SendForward : ActionKind::SendBackward, m});
      place(shape.rankOf(reader, m), end,
            {reader,
             forward ? ActionKind::RecvForward : ActionKind::RecvBackward, m});
    }
  auto key = [](const Insertion &insertion) {
    const Action &action = insertion.action;
    return std::tuple(insertion.position, insertion.time, action.kind,
                      action.chunk, action.microbatch);
  };
  for (std::vector<Insertion> &row : insertions)
    std::sort(row.begin(), row.end(),
              [&](const Insertion &a, const Insertion &b) {
                return key(a) < key(b);
              });
  return insertions;
}

} // namespace

Timeline addCommunication(const Timeline &timeline, const CostTable &costs) {
  Timeline compute = timeline;
  for (std::vector<Action> &row : compute.ranks)
    row = computeOf(row);
  std::vector<std::vector<Insertion>> insertions =
      placeMessages(compute, costs);
  Timeline result = timeline;
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    // Messages stand directly after a compute action, before other actions
    // there.
    std::vector<Action> row;
    auto next = insertions[rank].begin();
    size_t position = 0;
    auto insert = [&] {
      for (; next != insertions[rank].end() && next->position == position;
           ++next)
        row.push_back(next->action);
    };
    insert();
    for (const Action &action : timeline.ranks[rank]) {
      row.push_back(action);
      if (!isCompute(action.kind))
        continue;
      ++position;
      insert();
    }
    result.ranks[rank] = std::move(row);
  }
  return result;
}

} // namespace rota::pipe
