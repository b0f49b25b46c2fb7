// SPDX-License-Identifier: Apache-2.0
//
// The measure of a search for timelines: the step as it will run.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_JUDGE_H
#define ROTA_PASSES_PIPELINE_SEARCH_JUDGE_H

#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/search/OrderRun.h"

namespace rota::pipe {

/// A length that is shorter by more than rounding.
inline bool isLess(double length, double other) {
  return length < other * (1 - 1e-9);
}

/// The measure of timelines and orders. Less is better.
struct Score {
  double makespan = kNever;
  int activations = 0; // peak of the rank that holds most
  bool operator<(const Score &other) const {
    if (isLess(makespan, other.makespan) || isLess(other.makespan, makespan))
      return makespan < other.makespan;
    return activations < other.activations;
  }
};

struct Candidate : Score {
  Timeline timeline;
};

/// Simulates timelines for a request: with sends and receives where it
/// communicates, with pairs where it may have any.
class Judge {
public:
  /// Keeps a reference to `request`.
  explicit Judge(const ScheduleRequest &request) : request(request) {}

  /// True where pairs may make a step shorter.
  bool mayPair() const { return request.pairs && request.costs.pairShare < 1; }

  /// A pair takes at least (1 + s) / 2 of the time of its halves, where s is
  /// the share of the shorter one. So a timeline with pairs is not shorter than
  /// one without whose F and B, or I, cost that much less.
  double leastShare() const {
    return mayPair() ? (1 + request.costs.pairShare) / 2 : 1;
  }

  /// The step as it will run. Its makespan is kNever where the ranks wait for
  /// ever, where it holds more activations than the request allows, and where
  /// it adds gradients in another order than the ascending one.
  Candidate judge(Timeline timeline) const;

  /// Gives the candidate pairs where these make it shorter.
  void addPairs(Candidate &candidate) const;

private:
  const ScheduleRequest &request;
};

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_JUDGE_H
