// SPDX-License-Identifier: Apache-2.0
//
// Time to generate, verify and simulate a timeline of each schedule with about
// 65,000 compute actions on 16 ranks, without messages and with them:
// `bench-timelines`. The best of five, in milliseconds.
#include "passes/pipeline/schedules/Schedules.h"
#include "passes/pipeline/timeline/Communication.h"
#include "passes/pipeline/timeline/Simulator.h"
#include "passes/pipeline/timeline/TimelineVerifier.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

using namespace rota::pipe;

/// The least milliseconds of five runs of `body`.
template <typename Body> static double milliseconds(Body body) {
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    auto start = std::chrono::steady_clock::now();
    body();
    std::chrono::duration<double, std::milli> time =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count());
  }
  return best;
}

/// A shape with about 65,000 F and B, or F, I and W, for `schedule`.
static Shape largeShape(const Schedule &schedule) {
  Shape shape = demandedShape(schedule.name, {16, 8, 16});
  std::string error;
  std::optional<Timeline> timeline =
      makeTimeline(schedule.name,
                   {{shape.stages, shape.repeats, 32, shape.placement}}, error);
  size_t actions = 0;
  for (const std::vector<Action> &row : timeline->ranks)
    actions += row.size();
  shape.microbatches = int(65536 / actions) * 32;
  return shape;
}

int main() {
  std::printf("%-24s %8s %9s %9s %9s\n", "schedule", "actions", "generate",
              "verify", "simulate");
  for (const Schedule &schedule : allSchedules()) {
    if (schedule.isSearch) // seconds, which auto.py measures
      continue;
    ScheduleRequest request{largeShape(schedule)};
    std::string error;
    std::optional<Timeline> timeline;
    double generate = milliseconds(
        [&] { timeline = makeTimeline(schedule.name, request, error); });
    for (bool messages : {false, true}) {
      Timeline measured = messages ? addCommunication(*timeline) : *timeline;
      size_t actions = 0, violations = 0;
      for (const std::vector<Action> &row : measured.ranks)
        actions += row.size();
      double verify =
          milliseconds([&] { violations += verifyTimeline(measured).size(); });
      double run = milliseconds([&] { violations += !simulate(measured, {}); });
      std::printf("%-24s %8zu %9.2f %9.2f %9.2f%s\n",
                  messages ? "  with messages" : schedule.name, actions,
                  messages ? 0.0 : generate, verify, run,
                  violations ? "  INVALID" : "");
    }
  }
}
