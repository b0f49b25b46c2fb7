// SPDX-License-Identifier: Apache-2.0
//
// The schedules by name. A generator only writes F and B, or F, I and W, in
// order for each rank; splitting, communication and verification are common to
// all schedules. Every generator takes each chunk's backwards in ascending
// microbatch order, so that gradients accumulate in the same order under every
// schedule.
#ifndef ROTA_PASSES_PIPELINE_SCHEDULES_SCHEDULES_H
#define ROTA_PASSES_PIPELINE_SCHEDULES_SCHEDULES_H

#include "passes/pipeline/timeline/Simulator.h"

#include <algorithm>

namespace rota::pipe {

struct SearchReport;

/// The parameters of a schedule.
struct ScheduleRequest {
  Shape shape;
  int delay = 1;              // d: 1 or 2; see Timeline
  bool splitBackward = false; // I and W instead of B
  /// The most activations of a chunk for one microbatch that a rank may hold,
  /// as RankUsage::peakLive counts them; 0: no bound. For users a bound is a
  /// number of activations of all layers of a rank: chunkActivations.
  int activations = 0;
  /// Whether the pairs that the schedule is published with run at once; the
  /// search may add some.
  bool pairs = false;
  // For the search (search/Search.h) alone:
  CostTable costs = {};           // makespans are compared with
  bool communicates = false;      // and with sends and receives
  bool anyPlacement = false;      // it may take another than the shape's
  int64_t searchActions = 0;      // simulated at most; 0: by default
  SearchReport *report = nullptr; // null: not wanted
};

/// The numbers of microbatches for which a schedule exists.
enum class MicrobatchRule { Any, MultipleOfStages, TwiceStages };

/// The shapes for which a schedule exists.
struct ShapeRule {
  std::optional<Placement> placement; // nothing: any. One rank has any.
  /// Chunks on each rank; 0: any number. 1 stands for any number on a single
  /// rank, which runs them as if they were one.
  int repeats = 0;
  MicrobatchRule microbatches = MicrobatchRule::Any;
  const char *advice = ""; // for another placement or number
};

/// Writes the timeline of a shape that has been checked, by the schedule's rule
/// too, without its unpipelined chunk. When the schedule does not exist for the
/// request all the same, `error` names the numbers and the rule.
using Generator = std::optional<Timeline> (*)(const ScheduleRequest &request,
                                              std::string &error);

struct Schedule {
  const char *name;
  const char *description; // a clause, for help
  Generator generate;
  ShapeRule rule = {};
  int maxDelay = 1; // the longest delay for which the generator has an order
  /// Whether it is published with pairs, and its generator marks them, or it
  /// searches for them.
  bool hasPairs = false;
  /// Whether it searches among the others. Its timelines have the unpipelined
  /// chunk and the split already.
  bool isSearch = false;
};

#define ROTA_SCHEDULE(name) extern const Schedule schedule##name;
#include "passes/pipeline/schedules/Schedules.def"
#undef ROTA_SCHEDULE

/// All schedules, simplest first.
const std::vector<Schedule> &allSchedules();

/// The schedule called `name`; null when there is none.
const Schedule *findSchedule(std::string_view name);

/// True when `name` is that of a schedule that searches.
inline bool isSearch(std::string_view name) {
  const Schedule *schedule = findSchedule(name);
  return schedule && schedule->isSearch;
}

/// "gpipe, circular, ..." for help and messages; of those with pairs.
std::string scheduleNames();
std::string namesWithPairs();

/// `shape` with the placement and the repeats that the schedule called `name`
/// demands, if it demands them.
Shape demandedShape(std::string_view name, Shape shape);

/// The unit in which users give and read activations: those of all layers of a
/// rank for one microbatch, so that one of R chunks counts 1/R. 1f1b holds as
/// many as it has ranks. These turn `activations` into those of a chunk, the
/// largest number that is not more, and back.
inline int chunkActivations(double activations, const Shape &shape) {
  return int(activations * shape.repeats + 1e-9);
}
inline double wholeActivations(int activations, const Shape &shape) {
  return double(activations) / shape.repeats;
}

/// Activations as a share of the most that 1f1b holds on as many ranks with as
/// many microbatches.
inline double shareOfOneFOneB(double activations, const Shape &shape) {
  return activations / std::min(shape.stages, shape.microbatches);
}

/// The mistake in a bound that a user gave for a timeline, 0 being none; or an
/// empty string.
std::string checkActivationBound(double activations);

/// The mistake of a timeline that completes and in which a rank holds more than
/// `bound` activations of a chunk; empty: none does, or the bound is 0.
std::string checkActivations(const Timeline &timeline, int bound);

/// Generates the schedule called `name`, with pairs or without, adds the
/// unpipelined chunk that the shape may have, and splits the backwards where
/// the request says so and the schedule has not. Nothing and an `error` when
/// the name is unknown, a number of the request is out of range, the schedule
/// does not exist for the numbers or has no pairs that the request wants, or it
/// holds more activations than the request allows.
std::optional<Timeline> makeTimeline(std::string_view name,
                                     const ScheduleRequest &request,
                                     std::string &error);

/// The fewest microbatches, out of 1, S and 2*S, with which the schedule exists
/// for the rest of `request`. Nothing when it exists with none of them.
std::optional<int> fewestMicrobatches(std::string_view name,
                                      ScheduleRequest request);

/// Replaces each B by I and W. A rank runs W when it would be idle otherwise,
/// and before an F that would make it hold more activations than with B. So
/// bubbles shrink and peak memory does not grow. The W of a chunk keep the
/// order of its B. A pair of B and F becomes one of I and F, but where a W
/// comes between them.
Timeline splitBackward(const Timeline &timeline);

} // namespace rota::pipe

#endif // ROTA_PASSES_PIPELINE_SCHEDULES_SCHEDULES_H
