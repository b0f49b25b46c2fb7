// SPDX-License-Identifier: Apache-2.0
//
// Ranks decide in the order of time, so all that is ready at a decision is
// known. A rank without a ready action decides again when the first value that
// it can use arrives.
#include "passes/pipeline/search/ListScheduler.h"

#include "passes/pipeline/search/OrderRun.h"

#include <climits>
#include <queue>

namespace rota::pipe {
namespace {

class ListScheduler {
public:
  ListScheduler(const Problem &problem, const Priorities &priorities)
      : problem(problem), priorities(priorities), order(problem.shape.stages),
        done(problem.lanes()),
        ends(size_t(problem.path()) * problem.microbatches),
        ranks(problem.shape.stages), live(problem.chunks) {
    for (int rank = 0; rank < problem.shape.stages; ++rank)
      order[rank].reserve(problem.rows[rank].size() * problem.microbatches);
  }

  Order run(Budget &budget) {
    for (int rank = 0; rank < problem.shape.stages; ++rank)
      decideAt(rank, 0);
    while (!events.empty()) {
      auto [time, rank] = events.top();
      events.pop();
      if (ranks[rank].next != time)
        continue; // it decides earlier, or has decided
      ranks[rank].next = kNever;
      // A decision looks at all lanes of the rank: two or three a chunk are
      // what an action of a simulation costs.
      budget.spend(problem.shape.repeats);
      decide(rank, time);
    }
    return std::move(order);
  }

private:
  struct RankState {
    double clock = 0;     // end of its last action
    double next = kNever; // time of its next decision
  };
  using Event = std::pair<double, int>; // time and rank

  const Problem &problem;
  const Priorities &priorities;
  Order order;
  std::vector<int> done;    // actions of each lane
  std::vector<double> ends; // per microbatch and lane of the path
  std::vector<RankState> ranks;
  std::vector<int> live; // activations of each chunk
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;

  double &endOf(int lane, int microbatch) {
    return ends[size_t(microbatch) * problem.path() + lane];
  }

  void decideAt(int rank, double time) {
    if (time >= ranks[rank].next)
      return;
    ranks[rank].next = time;
    events.push({time, rank});
  }

  /// When the next action of `lane` can start: kNever where a value is not on
  /// its way, the lane is at its end, or memory is missing.
  double readyTime(int lane) {
    int microbatch = done[lane];
    if (microbatch == problem.microbatches)
      return kNever;
    if (problem.isWeight(lane))
      return done[problem.backwardOf(problem.chunkOf(lane))] > microbatch
                 ? 0
                 : kNever;
    if (problem.isForward(lane) && !hasRoom(lane))
      return kNever;
    if (lane == 0)
      return 0;
    return done[lane - 1] > microbatch
               ? endOf(lane - 1, microbatch) + problem.latency[lane]
               : kNever;
  }

  /// The rule of scheduleByPriority's comment.
  bool hasRoom(int chunk) {
    if (problem.bound == INT_MAX)
      return true;
    int rank = problem.rankOf[chunk], held = 1;
    for (int row = 0; row < problem.shape.repeats; ++row) {
      held += live[problem.shape.chunkOf(rank, row)];
      if (row >= problem.shape.rowOf(chunk) &&
          held > problem.bound - (problem.shape.repeats - 1 - row))
        return false;
    }
    return true;
  }

  double keyOf(int lane) const {
    return priorities.offsets[lane] + done[lane] * priorities.period;
  }

  void decide(int rank, double now) {
    int best = -1, later = -1;
    double bestKey = kNever, laterKey = kNever, laterTime = kNever;
    double firstTime = kNever;
    for (int lane : problem.rows[rank]) {
      double time = readyTime(lane);
      if (time == kNever)
        continue;
      double key = keyOf(lane);
      if (time <= now) {
        if (key < bestKey)
          best = lane, bestKey = key;
        continue;
      }
      firstTime = std::min(firstTime, time);
      if (key < laterKey)
        later = lane, laterKey = key, laterTime = time;
    }
    if (best < 0) {
      if (firstTime != kNever)
        decideAt(rank, firstTime);
      return;
    }
    if (later >= 0 && laterKey < bestKey &&
        laterTime <= now + priorities.patience * problem.cost[best])
      return decideAt(rank, laterTime);
    start(rank, best, now);
  }

  void start(int rank, int lane, double now) {
    int microbatch = done[lane]++;
    order[rank].push_back(lane);
    double end = now + problem.cost[lane];
    ranks[rank].clock = end;
    decideAt(rank, end);
    live[problem.chunkOf(lane)] +=
        problem.isForward(lane) - problem.frees(lane);
    if (problem.isWeight(lane))
      return;
    endOf(lane, microbatch) = end;
    int reader = lane + 1;
    if (reader == problem.path())
      return;
    int other = problem.rankOf[reader];
    decideAt(other,
             std::max(ranks[other].clock, end + problem.latency[reader]));
  }
};

} // namespace

Order scheduleByPriority(const Problem &problem, const Priorities &priorities,
                         Budget &budget) {
  return ListScheduler(problem, priorities).run(budget);
}

} // namespace rota::pipe
