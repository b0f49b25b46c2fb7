// SPDX-License-Identifier: Apache-2.0
//
// Timelines for several tests.
#ifndef ROTA_TEST_PASSES_PIPELINE_EXAMPLES_H
#define ROTA_TEST_PASSES_PIPELINE_EXAMPLES_H

#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/timeline/Communication.h"
#include "passes/pipeline/timeline/Simulator.h"
#include "passes/pipeline/timeline/TimelineVerifier.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace rota::pipe {

inline Timeline generated(const char *name, int stages, int repeats,
                          int microbatches, int delay = 1, bool split = false,
                          Placement placement = Placement::Loop,
                          bool pairs = false) {
  std::string error;
  ScheduleRequest request{
      {stages, repeats, microbatches, placement}, delay, split};
  request.pairs = pairs;
  std::optional<Timeline> timeline = makeTimeline(name, request, error);
  EXPECT_TRUE(timeline) << name << ": " << error;
  return timeline.value_or(Timeline());
}

inline Timeline parsed(const char *csv, int delay = 1) {
  std::string error;
  auto rows = parseCsv(csv, error);
  EXPECT_TRUE(rows) << error;
  return {inferShape(*rows), *rows, delay};
}

/// The violations that the verifier finds, a line for each.
inline std::string verified(const Timeline &timeline) {
  std::string text;
  for (const Violation &violation : verifyTimeline(timeline))
    text += violation.str() + "\n";
  return text;
}

struct Example {
  std::string name;
  Timeline timeline;
};

/// The schedules whose rule `fits`, but those that search.
template <typename Fits> std::vector<const char *> schedulesWith(Fits fits) {
  std::vector<const char *> names;
  for (const Schedule &schedule : allSchedules())
    if (!schedule.isSearch && fits(schedule.rule))
      names.push_back(schedule.name);
  return names;
}

/// Every schedule at square, odd, long and single-rank shapes, whole and split.
inline std::vector<Example> examples() {
  std::vector<Example> all;
  auto add = [&](const char *name, int s, int r, int m, int d = 1,
                 Placement placement = Placement::Loop) {
    for (bool split : {false, true})
      if (!split || !hasAny(all.back().timeline, ActionKind::BackwardInput))
        all.push_back({std::string(name) + " " + std::to_string(s) + "x" +
                           std::to_string(r) + "x" + std::to_string(m) + " d" +
                           std::to_string(d) + (split ? " split" : "") +
                           (placement == Placement::V ? " v" : ""),
                       generated(name, s, r, m, d, split, placement)});
  };
  auto isV = [](const ShapeRule &rule) {
    return rule.placement == Placement::V;
  };
  for (const char *name : schedulesWith(std::not_fn(isV)))
    for (int repeats : {1, 2, 5})
      for (int microbatches : {1, 3, 8})
        add(name, 1, repeats, microbatches);
  for (const char *name : schedulesWith(isV))
    for (auto [s, m] :
         {std::pair(1, 2), {1, 5}, {2, 4}, {3, 7}, {4, 8}, {5, 11}})
      add(name, s, 2, m, 1, Placement::V);
  for (const char *name : schedulesWith([&](const ShapeRule &rule) {
         return isV(rule) && rule.microbatches == MicrobatchRule::Any;
       }))
    for (auto [s, m] : {std::pair(1, 1), {2, 1}, {3, 2}, {4, 6}})
      add(name, s, 2, m, 1, Placement::V);
  for (const char *name :
       schedulesWith([](const ShapeRule &rule) { return rule.repeats == 0; })) {
    add(name, 2, 1, 2);
    add(name, 2, 2, 2);
    add(name, 2, 16, 4);
    add(name, 3, 2, 6);
    add(name, 3, 3, 9);
    add(name, 4, 1, 4);
    add(name, 4, 2, 4);
    add(name, 4, 2, 8);
    add(name, 4, 4, 16);
    add(name, 5, 3, 10);
  }
  for (auto [s, r, m] : {std::tuple(2, 2, 4),
                         {2, 1, 4},
                         {3, 2, 6},
                         {4, 2, 8},
                         {4, 2, 16},
                         {3, 3, 12}})
    add("circular", s, r, m, 2);
  for (auto [s, m] :
       {std::pair(2, 1), {2, 5}, {3, 5}, {4, 2}, {4, 8}, {5, 3}, {7, 20}})
    for (const char *name :
         schedulesWith([](const ShapeRule &rule) { return rule.repeats == 1; }))
      add(name, s, 1, m);
  for (auto [s, r, m] :
       {std::tuple(3, 1, 5), {3, 2, 5}, {4, 2, 3}, {2, 3, 7}}) {
    add("gpipe", s, r, m);
    add("looped-bfs", s, r, m);
    add("gpipe", s, r, m, 1, Placement::V);
  }
  return all;
}

/// Schedules with pairs, whole and split.
inline std::vector<Example> pairedExamples() {
  std::vector<Example> all;
  for (auto [s, m] : {std::pair(1, 2), {1, 5}, {2, 4}, {3, 7}, {4, 8}, {5, 11}})
    all.push_back({"dualpipev " + std::to_string(s) + "x" + std::to_string(m),
                   generated("dualpipev", s, 2, m, 1, false, Placement::V,
                             /*pairs=*/true)});
  for (auto [s, r, m] : {std::tuple(1, 2, 3),
                         {1, 1, 4},
                         {2, 2, 4},
                         {3, 2, 6},
                         {3, 3, 9},
                         {4, 2, 16},
                         {5, 3, 10}})
    for (bool split : {false, true})
      all.push_back({"interleaved-overlap " + std::to_string(s) + "x" +
                         std::to_string(r) + "x" + std::to_string(m) +
                         (split ? " split" : ""),
                     generated("interleaved-overlap", s, r, m, 1, split,
                               Placement::Loop, /*pairs=*/true)});
  return all;
}

/// A valid timeline in random order: a rank runs any ready action.
inline Timeline randomTimeline(std::mt19937 &random) {
  auto below = [&](int n) { return int(random() % n); };
  Shape shape{1 + below(5), 1 + below(4), 1 + below(6),
              below(2) ? Placement::V : Placement::Loop};
  Timeline timeline{shape, {}, 1};
  timeline.ranks.resize(shape.stages);
  int chunks = shape.chunks(), total = chunks * shape.microbatches;
  std::vector<bool> forward(total), backward(total);
  auto at = [&](int chunk, int m) { return chunk * shape.microbatches + m; };
  while (true) {
    std::vector<Action> ready;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int m = 0; m < shape.microbatches; ++m)
        if (!forward[at(chunk, m)] && (chunk == 0 || forward[at(chunk - 1, m)]))
          ready.push_back({chunk, ActionKind::Forward, m});
      for (int m = 0; m < shape.microbatches; ++m)
        if (!backward[at(chunk, m)] && forward[at(chunk, m)] &&
            (chunk + 1 == chunks || backward[at(chunk + 1, m)]))
          ready.push_back({chunk, ActionKind::Backward, m});
    }
    if (ready.empty())
      return timeline;
    Action action = ready[below(ready.size())];
    bool isForward = action.kind == ActionKind::Forward;
    (isForward ? forward : backward)[at(action.chunk, action.microbatch)] =
        true;
    timeline.ranks[shape.rankOf(action.chunk)].push_back(action);
  }
}

} // namespace rota::pipe

#endif // ROTA_TEST_PASSES_PIPELINE_EXAMPLES_H
