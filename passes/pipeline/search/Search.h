// SPDX-License-Identifier: Apache-2.0
//
// The schedule `auto`: the timeline with the least makespan that a search
// finds, under a bound on the activations of each rank.
#ifndef ROTA_PASSES_PIPELINE_SEARCH_SEARCH_H
#define ROTA_PASSES_PIPELINE_SEARCH_SEARCH_H

#include "passes/pipeline/schedules/Schedules.h"

namespace rota::pipe {

/// The result and the effort of a search. Makespans are in the unit of the
/// costs.
struct SearchReport {
  int rules = 0; // priority rules that were tried
  double makespan = 0;
  /// The named schedule with the least makespan of those that fit the request;
  /// empty when there is none.
  std::string named;
  double namedMakespan = 0;
  double lowerBound = 0; // by lowerBoundOf
  Placement placement = Placement::Loop;
  int repeats = 1;
  bool splitBackward = false;
  /// The share of the lower bound by which the timeline is longer.
  double distance() const {
    return lowerBound > 0 ? makespan / lowerBound - 1 : 0;
  }
  /// "repeats 2, split backwards, 82 priority rules, placement v, makespan 55,
  /// best named schedule 1f1b with 58, lower bound 55, distance 0.0 %".
  std::string str() const;
};

/// Searches the timeline of a checked shape, its unpipelined chunk included.
/// Backwards are split where the request says so, and B otherwise. Where
/// the request leaves the placement open, both are tried. The result has
/// gradients in ascending order of microbatches, keeps the bound and is not
/// longer than any named schedule of the same form that keeps it. Of timelines
/// of one makespan it is the one that holds the least activations, of those
/// that were met.
///
/// The work is bounded by simulated actions, and random numbers have a fixed
/// seed, so the same request has the same result. Nothing, and an `error`, when
/// the bound is less than what one microbatch needs.
std::optional<Timeline> searchTimeline(const ScheduleRequest &request,
                                       SearchReport &report,
                                       std::string &error);

/// Actions that a search simulates at most, by default; one or two seconds'
/// work. It is less where there are few actions: kSearchRuns times all of them.
inline constexpr int64_t kSearchActions = int64_t(1) << 25;
inline constexpr int64_t kSearchRuns = 4096;
int64_t searchActionsOf(const ScheduleRequest &request);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SEARCH_SEARCH_H
