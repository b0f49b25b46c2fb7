// SPDX-License-Identifier: Apache-2.0
//
// Rules that the timelines of a search keep: the rules of timelines, the bound,
// the order of gradients, and that no named schedule is shorter.
#include "passes/pipeline/drawing/Comparison.h"
#include "passes/pipeline/search/Forms.h"
#include "passes/pipeline/timeline/GradientOrder.h"
#include "test/passes/pipeline/Examples.h"

#include <algorithm>

using namespace rota::pipe;

namespace {

/// Enough for shapes of a test; the default is for large ones.
constexpr int64_t kActions = 200'000;

int peakOf(const Simulation &simulation) {
  int peak = 0;
  for (const RankUsage &rank : simulation.ranks)
    peak = std::max(peak, rank.peakLive);
  return peak;
}

std::string textOf(const ScheduleRequest &request) {
  const Shape &shape = request.shape;
  std::string text;
  for (int number :
       {shape.stages, shape.repeats, shape.microbatches, int(shape.placement),
        request.activations, int(request.splitBackward), int(request.pairs)})
    text += std::to_string(number) + " ";
  return text;
}

/// Runs a timeline as the request's search judges it.
std::optional<Simulation> simulated(const ScheduleRequest &request,
                                    const Timeline &timeline) {
  return simulate(request.communicates
                      ? addCommunication(timeline, request.costs)
                      : timeline,
                  request.costs);
}

/// Checks all that a search promises, and returns its makespan.
double searched(ScheduleRequest request) {
  SCOPED_TRACE(textOf(request));
  SearchReport report;
  request.report = &report;
  std::string error;
  std::optional<Timeline> timeline = makeTimeline("auto", request, error);
  EXPECT_TRUE(timeline) << error;
  if (!timeline)
    return 0;
  EXPECT_EQ(verified(*timeline), "");
  EXPECT_EQ(verified(addCommunication(*timeline)), "");
  EXPECT_EQ(reorderedGradients(*timeline), "");
  EXPECT_EQ(hasAny(*timeline, ActionKind::Backward), !request.splitBackward);
  EXPECT_EQ(hasAny(*timeline, ActionKind::BackwardInput),
            request.splitBackward);
  std::optional<Simulation> simulation = simulated(request, *timeline);
  if (request.activations)
    EXPECT_LE(peakOf(*simulation), request.activations);
  EXPECT_DOUBLE_EQ(simulation->makespan, report.makespan);
  EXPECT_LE(report.lowerBound, report.makespan * (1 + 1e-9));
  return report.makespan;
}

/// Checks that no named schedule with the request's form is shorter, with its
/// pairs or without.
void expectNoneShorter(ScheduleRequest request) {
  double makespan = searched(request);
  for (const Schedule &schedule : allSchedules())
    for (bool pairs : {false, true}) {
      if (schedule.isSearch || (pairs && !request.pairs))
        continue;
      ScheduleRequest own = request;
      own.pairs = pairs;
      std::string error;
      std::optional<Timeline> timeline =
          makeTimeline(schedule.name, own, error);
      if (timeline &&
          hasAny(*timeline, ActionKind::BackwardInput) == request.splitBackward)
        EXPECT_LE(makespan, simulated(request, *timeline)->makespan)
            << schedule.name << " " << textOf(request);
    }
}

void expectNoneShorter(int stages, int repeats, Placement placement) {
  for (int rounds : {1, 2, 4})
    for (int bound : {0, stages, stages / 2 + 2})
      for (bool split : {false, true}) {
        ScheduleRequest request{
            {stages, repeats, rounds * stages, placement}, 1, split, bound};
        request.searchActions = kActions;
        request.costs.backward = 2;
        expectNoneShorter(request);
      }
}

TEST(Search, isAsShortAsNamedSchedules) {
  for (int stages : {2, 3, 4, 8})
    expectNoneShorter(stages, 1, Placement::Loop);
}

TEST(Search, isAsShortAsNamedSchedulesOfTwoChunks) {
  for (int stages : {2, 3, 4, 8})
    for (Placement placement : {Placement::Loop, Placement::V})
      expectNoneShorter(stages, 2, placement);
}

TEST(Search, isAsShortAsNamedSchedulesWithUnevenCosts) {
  for (bool split : {false, true})
    for (int bound : {0, 5}) {
      ScheduleRequest request{{4, 2, 8}, 1, split, bound};
      request.searchActions = kActions;
      request.costs.send = 0.25;
      for (double forward : {2.5, 1.0, 1.0, 1.0, 1.1, 1.0, 0.9, 3.7})
        request.costs.chunks.push_back(
            {forward, 2 * forward, forward, forward});
      expectNoneShorter(request);
    }
}

// Messages as long as a microbatch's F on two chunks: a timeline that is short
// without them is long with them.
TEST(Search, isAsShortAsNamedSchedulesWithMessages) {
  for (bool split : {false, true})
    for (int stages : {3, 4})
      for (double send : {0.1, 2.0}) {
        ScheduleRequest request{{stages, 2, 2 * stages}, 1, split};
        request.searchActions = kActions;
        request.communicates = true;
        request.costs.send = send;
        request.costs.forward = 1.25;
        expectNoneShorter(request);
      }
}

TEST(Search, isAsShortAsNamedSchedulesWithPairs) {
  for (double share : {0.0, 0.5, 1.0})
    for (bool split : {false, true})
      for (bool communicates : {false, true})
        for (int bound : {0, 7}) {
          ScheduleRequest request{{3, 2, 9}, 1, split, bound};
          request.searchActions = kActions;
          request.pairs = request.anyPlacement = true;
          request.communicates = communicates;
          request.costs.backward = 2;
          request.costs.send = 0.125;
          request.costs.pairShare = share;
          expectNoneShorter(request);
        }
}

// Half of the shorter half is hidden; where nothing is, there are no pairs.
TEST(Search, pairsWhereItIsShorter) {
  ScheduleRequest request{{4, 2, 16}, 1, true};
  request.anyPlacement = true;
  request.costs.pairShare = 0.5;
  std::string error;
  EXPECT_FALSE(hasPairs(*makeTimeline("auto", request, error)));
  double apart = searched(request);
  request.pairs = true;
  EXPECT_TRUE(hasPairs(*makeTimeline("auto", request, error)));
  EXPECT_LT(searched(request), 0.9 * apart);
  request.costs.pairShare = 1;
  EXPECT_FALSE(hasPairs(*makeTimeline("auto", request, error)));
  EXPECT_DOUBLE_EQ(searched(request), apart);
}

TEST(Search, addsUnpipelinedLayers) {
  for (bool split : {false, true})
    for (int bound : {0, 4}) {
      ScheduleRequest request{{3, 2, 6}, 1, split, bound};
      request.searchActions = kActions;
      request.shape.hasUnpipelined = true;
      expectNoneShorter(request);
    }
}

// The fill of the pipeline and the work of a rank alone: no idle time after.
TEST(Search, reachesTheLowerBound) {
  for (auto [stages, repeats, microbatches, bound] : {std::tuple(4, 1, 8, 4),
                                                      {8, 1, 32, 8},
                                                      {4, 2, 8, 8},
                                                      {8, 2, 32, 16},
                                                      {5, 2, 13, 10}}) {
    ScheduleRequest request{{stages, repeats, microbatches,
                             repeats == 1 ? Placement::Loop : Placement::V},
                            1,
                            true,
                            bound};
    EXPECT_DOUBLE_EQ(searched(request),
                     3 * repeats * microbatches + stages - 1);
  }
}

// Half the memory of 1F1B, or less, where the placement is a V (Qi et al.,
// arXiv 2405.15362): a step of many microbatches has next to no bubble.
TEST(Search, runsInAThirdOfTheMemory) {
  ScheduleRequest request{{4, 2, 64, Placement::V}, 1, true, 4};
  EXPECT_LE(searched(request), 1.04 * 6 * 64);
}

// Without a bound, the shortest timelines hold anything from 12 to 30.
TEST(Search, holdsNoMoreThanItNeeds) {
  ScheduleRequest request{{4, 3, 10}, 1, true};
  EXPECT_DOUBLE_EQ(searched(request), 3 * 3 * 10 + 3);
  std::string error;
  std::optional<Timeline> timeline = makeTimeline("auto", request, error);
  EXPECT_LE(peakOf(*simulate(*timeline, {})), 13);
}

TEST(Search, triesBothPlacements) {
  ScheduleRequest request{{4, 2, 16}, 1, true, 5};
  double loop = searched(request);
  request.shape.placement = Placement::V;
  double v = searched(request);
  request.anyPlacement = true;
  EXPECT_LT(v, loop);
  EXPECT_LE(searched(request), 1.01 * v);
}

TEST(Search, givesTheSameTimelineTwice) {
  ScheduleRequest request{{4, 2, 8}, 1, true, 4};
  request.anyPlacement = true;
  std::string error;
  EXPECT_EQ(printCsv(makeTimeline("auto", request, error)->ranks),
            printCsv(makeTimeline("auto", request, error)->ranks));
}

TEST(Search, refusesABoundBelowOneMicrobatch) {
  ScheduleRequest request{{4, 3, 8}, 1, false, 2};
  std::string error;
  EXPECT_FALSE(makeTimeline("auto", request, error));
  EXPECT_EQ(error, "expected a bound of at least 1 activations, which one "
                   "microbatch needs on every rank, got 0.666667");
  request.activations = 3;
  EXPECT_GT(searched(request), 0);
}

// Costs are those of all layers of a rank: two chunks cost half each.
TEST(Search, choosesTheShortestForm) {
  auto costsOf = [](const Shape &shape) {
    CostTable costs;
    costs.backward = 2;
    return std::optional(costsOfChunks(shape, costs));
  };
  auto makespan = [&](OpenForm open, double activations) {
    SearchReport report;
    std::string error;
    auto timeline = searchForms("auto", {{4, 1, 8}}, open, activations, costsOf,
                                report, error);
    EXPECT_TRUE(timeline) << error;
    EXPECT_EQ(timeline->shape.repeats, report.repeats);
    EXPECT_EQ(hasAny(*timeline, ActionKind::BackwardInput),
              report.splitBackward);
    EXPECT_TRUE(open.repeats || report.repeats == 1);
    EXPECT_TRUE(open.splitBackward || !report.splitBackward);
    return report.makespan;
  };
  EXPECT_EQ(makespan({}, 0), 33);
  EXPECT_EQ(makespan({false, true}, 0), 27);
  EXPECT_EQ(makespan({true, true}, 0), 25.5);
  EXPECT_LT(makespan({true, true}, 2), makespan({false, true}, 2));
}

TEST(Search, saysWhatItDid) {
  SearchReport report{30, 66, "1f1b", 72, 60, Placement::V};
  EXPECT_EQ(report.str(),
            "repeats 1, whole backwards, 30 priority rules, placement v, "
            "makespan 66, best named schedule 1f1b with 72, lower bound 60, "
            "distance 10.0 %");
  report.named.clear();
  report.repeats = 2;
  report.splitBackward = true;
  EXPECT_EQ(report.str(),
            "repeats 2, split backwards, 30 priority rules, placement v, "
            "makespan 66, no named schedule fits, lower bound 60, distance "
            "10.0 %");
}

// A bound is for named schedules too.
TEST(Schedules, keepTheBound) {
  std::string error;
  EXPECT_TRUE(makeTimeline("1f1b", {{4, 1, 8}, 1, true, 4}, error)) << error;
  EXPECT_FALSE(makeTimeline("gpipe", {{4, 1, 8}, 1, true, 4}, error));
  EXPECT_EQ(error, "expected a schedule with at most 4 activations on each "
                   "rank, got 8 on rank 0, which holds most");
  // Eager warm-ups are longest on the first rank, those of a v on the last.
  EXPECT_FALSE(makeTimeline("eager-1f1b", {{4, 1, 8}, 1, false, 4}, error));
  EXPECT_NE(error.find("got 7 on rank 0,"), std::string::npos) << error;
}

} // namespace
