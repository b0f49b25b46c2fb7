// SPDX-License-Identifier: Apache-2.0
//
// The decisions of the search for a timeline, as plain numbers: lanes, and the
// order in which each rank takes actions from its lanes.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_PROBLEM_H
#define ROTA_PASSES_PIPELINE_SEARCH_PROBLEM_H

#include "passes/pipeline/timeline/Simulator.h"

namespace rota::pipe {

/// A pipeline whose actions are to be ordered. A lane holds the actions of one
/// kind on one chunk, one for each microbatch, in ascending order. With C
/// chunks, lanes 0 to 2C - 1 are the path of a microbatch: F of chunks 0 to C -
/// 1, then B (or I) of chunks C - 1 to 0. Each action of the path reads the
/// value that the lane before it has made. Where backwards are split, lanes 2C
/// to 3C - 1 are the W of chunks 0 to C - 1, which follow their I.
struct Problem {
  /// `shape` has no unpipelined chunk. `activations`: the most that a rank
  /// holds, as RankUsage::peakLive counts them; 0: no bound.
  Problem(const Shape &shape, const CostTable &costs, bool split,
          int activations);

  Shape shape;
  int chunks, microbatches;
  bool split;
  int bound;                   // activations; INT_MAX without a bound
  std::vector<int> rankOf;     // by lane
  std::vector<double> cost;    // by lane: the cost of an action
  std::vector<double> latency; // by lane: latency of the value that it reads
  std::vector<std::vector<int>> rows; // lanes of each rank, ascending
  std::vector<double> work;           // by rank, for one microbatch

  int path() const { return 2 * chunks; }
  int lanes() const { return static_cast<int>(rankOf.size()); }
  bool isForward(int lane) const { return lane < chunks; }
  bool isWeight(int lane) const { return lane >= path(); }
  /// True for the lanes whose actions free an activation: W, or B.
  bool frees(int lane) const { return split ? isWeight(lane) : lane >= chunks; }
  int chunkOf(int lane) const {
    return isWeight(lane)    ? lane - path()
           : isForward(lane) ? lane
                             : path() - 1 - lane;
  }
  int backwardOf(int chunk) const { return path() - 1 - chunk; }
  int weightOf(int chunk) const { return path() + chunk; }
  Action actionOf(int lane, int microbatch) const;
  /// All actions of a step.
  int64_t actions() const { return int64_t(lanes()) * microbatches; }
};

/// For each rank the lanes of its actions in order. A lane's n-th entry is its
/// action on microbatch n.
using Order = std::vector<std::vector<int>>;

Timeline timelineOf(const Problem &problem, const Order &order);

/// The order of a timeline of compute actions. Nothing when it takes
/// microbatches of a lane in another order than the ascending one, or its
/// backwards are not split as the problem's are.
std::optional<Order> orderOf(const Problem &problem, const Timeline &timeline);

/// The remaining effort of a search, in simulated actions.
struct Budget {
  int64_t left = 0;
  /// False when nothing was left before.
  bool spend(int64_t actions) {
    bool some = left > 0;
    left -= actions;
    return some;
  }
};

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_PROBLEM_H
