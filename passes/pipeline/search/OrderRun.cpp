// SPDX-License-Identifier: Apache-2.0
//
// A rank runs until the value that it needs is missing, and goes on when that
// value has been made. Each action is visited once.
#include "passes/pipeline/search/OrderRun.h"

#include <algorithm>

namespace rota::pipe {

OrderRun::OrderRun(const Problem &problem)
    : problem(problem), endsOfRows(problem.shape.stages),
      pathEnds(size_t(problem.path()) * problem.microbatches),
      done(problem.lanes()), awaited(problem.shape.stages) {
  for (size_t rank = 0; rank < endsOfRows.size(); ++rank)
    endsOfRows[rank].reserve(problem.rows[rank].size() * problem.microbatches);
}

double OrderRun::arrival(int lane, int microbatch) const {
  if (lane == 0)
    return 0;
  return pathEnds[size_t(microbatch) * problem.path() + lane - 1] +
         problem.latency[lane];
}

double OrderRun::run(const Order &order) {
  std::ranges::fill(done, 0);
  std::ranges::fill(awaited, -1);
  for (std::vector<double> &ends : endsOfRows)
    ends.clear();
  runnable.clear();
  for (int rank = problem.shape.stages; rank-- > 0;)
    runnable.push_back(rank);
  while (!runnable.empty()) {
    int rank = runnable.back();
    runnable.pop_back();
    advance(order, rank);
  }
  double makespan = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    if (endsOfRows[rank].size() < order[rank].size())
      return kNever;
    if (!order[rank].empty())
      makespan = std::max(makespan, endsOfRows[rank].back());
  }
  return makespan;
}

void OrderRun::advance(const Order &order, int rank) {
  const std::vector<int> &row = order[rank];
  std::vector<double> &ends = endsOfRows[rank];
  double clock = ends.empty() ? 0 : ends.back();
  awaited[rank] = -1;
  while (ends.size() < row.size()) {
    int lane = row[ends.size()], microbatch = done[lane];
    if (problem.isWeight(lane)) {
      if (done[problem.backwardOf(problem.chunkOf(lane))] <= microbatch)
        return; // for ever: the I stands after it
      clock += problem.cost[lane];
    } else {
      if (lane > 0 && done[lane - 1] <= microbatch) {
        awaited[rank] = lane;
        return;
      }
      clock = std::max(clock, arrival(lane, microbatch)) + problem.cost[lane];
      pathEnds[size_t(microbatch) * problem.path() + lane] = clock;
    }
    ++done[lane];
    ends.push_back(clock);
    int reader = lane + 1;
    if (reader < problem.path() && awaited[problem.rankOf[reader]] == reader) {
      awaited[problem.rankOf[reader]] = -1;
      runnable.push_back(problem.rankOf[reader]);
    }
  }
}

double OrderRun::sumOfEnds() const {
  double sum = 0;
  for (const std::vector<double> &ends : endsOfRows)
    sum += ends.empty() ? 0 : ends.back();
  return sum;
}

int peakActivations(const Problem &problem, const std::vector<int> &row) {
  int live = 0, peak = 0;
  for (int lane : row) {
    live += problem.isForward(lane) - problem.frees(lane);
    peak = std::max(peak, live);
  }
  return peak;
}

} // namespace rota::pipe
