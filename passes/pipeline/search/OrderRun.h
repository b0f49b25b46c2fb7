// SPDX-License-Identifier: Apache-2.0
//
// The times of an order, for searches that need them many thousand times.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_ORDERRUN_H
#define ROTA_PASSES_PIPELINE_SEARCH_ORDERRUN_H

#include "passes/pipeline/search/Problem.h"

#include <limits>

namespace rota::pipe {

/// Runs orders by the rules of `simulate` for timelines of compute actions
/// without delay, with the same times. The arrays of one run are used again by
/// the next.
class OrderRun {
public:
  explicit OrderRun(const Problem &problem);

  /// The makespan; infinity when the order does not complete, or a W comes
  /// before its I.
  double run(const Order &order);

  /// The end of each action of each rank in the last run, by position.
  const std::vector<std::vector<double>> &ends() const { return endsOfRows; }
  /// When the value that `microbatch` needs in `lane` of the path arrives.
  double arrival(int lane, int microbatch) const;
  /// The sum of the ranks' last ends: breaks ties between equal makespans.
  double sumOfEnds() const;

private:
  const Problem &problem;
  std::vector<std::vector<double>> endsOfRows;
  std::vector<double> pathEnds; // per microbatch and lane of the path
  std::vector<int> done;        // actions of each lane
  std::vector<int> awaited;     // the lane that each rank waits in, or -1
  std::vector<int> runnable;    // ranks

  void advance(const Order &order, int rank);
};

inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// The largest number of activations that a rank holds in the course of `row`.
int peakActivations(const Problem &problem, const std::vector<int> &row);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_ORDERRUN_H
