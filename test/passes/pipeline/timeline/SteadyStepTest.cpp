// SPDX-License-Identifier: Apache-2.0
//
// Steps without a barrier between them, against closed forms and against
// the largest mean of a cycle through the ranks.
#include "passes/pipeline/timeline/SteadyStep.h"
#include "passes/pipeline/timeline/WeightWindows.h"
#include "test/passes/pipeline/Examples.h"

#include <algorithm>
#include <map>

using namespace rota::pipe;
using rota::boundStepTime;
using rota::StepEnds;
using rota::StepTimeBounds;

namespace {

constexpr double kNever = 1e9;

double timeOf(const Timeline &timeline, const CostTable &costs = {},
              double stepEnd = 0) {
  auto steady = steadyStep(timeline, costs, stepEnd);
  EXPECT_TRUE(steady);
  return steady ? steady->time : 0;
}

/// When the ranks end a step of compute actions that they begin at `begins`, by
/// repeated relaxation.
StepEnds endsOf(const Timeline &timeline, const CostTable &costs,
                const StepEnds &begins) {
  const Shape &shape = timeline.shape;
  auto key = [&](int chunk, const Action &action) {
    return std::tuple(chunk, rota::isForward(action.kind), action.microbatch);
  };
  std::map<std::tuple<int, bool, int>, double> made;
  StepEnds ends;
  for (bool moved = true; moved;) {
    moved = false;
    ends = begins;
    for (size_t rank = 0; rank < begins.size(); ++rank)
      for (const Action &action : timeline.ranks[rank]) {
        int producer = shape.producerOf(action);
        if (producer != kNoChunk) {
          auto value = made.find(key(producer, action));
          double latency =
              shape.rankOf(producer, action.microbatch) == int(rank)
                  ? 0
                  : costs.send;
          if (value != made.end())
            ends[rank] = std::max(ends[rank], value->second + latency);
        }
        ends[rank] += costs.of(action);
        if (action.kind == ActionKind::BackwardWeight)
          continue;
        auto [place, isNew] =
            made.insert({key(action.chunk, action), ends[rank]});
        moved |= isNew || place->second != ends[rank];
        place->second = ends[rank];
      }
  }
  return ends;
}

/// The largest mean of a cycle of the graph whose edge from rank q to rank r is
/// the time from q's begin of a step to r's end of it.
double largestCycleMean(const Timeline &timeline, const CostTable &costs) {
  size_t ranks = timeline.ranks.size();
  std::vector<StepEnds> edges(ranks); // [from][to]
  for (size_t from = 0; from < ranks; ++from) {
    StepEnds begins(ranks, -kNever);
    begins[from] = 0;
    edges[from] = endsOf(timeline, costs, begins);
  }
  double largest = 0;
  std::vector<StepEnds> paths = edges; // paths with `length` edges
  for (size_t length = 1; length <= ranks; ++length) {
    for (size_t rank = 0; rank < ranks; ++rank)
      largest = std::max(largest, paths[rank][rank] / double(length));
    std::vector<StepEnds> longer(ranks, StepEnds(ranks, -kNever));
    for (size_t from = 0; from < ranks; ++from)
      for (size_t over = 0; over < ranks; ++over)
        for (size_t to = 0; to < ranks; ++to)
          longer[from][to] =
              std::max(longer[from][to], paths[from][over] + edges[over][to]);
    paths = longer;
  }
  return largest;
}

TEST(SteadyStep, isTheLargestMeanOfACycle) {
  std::mt19937 random(3);
  auto quarters = [&] { return double(1 + random() % 12) / 4; };
  for (const Example &example : examples()) {
    if (example.timeline.delay > 1)
      continue;
    CostTable costs;
    costs.send = double(random() % 4) / 4;
    for (int chunk = 0; chunk < example.timeline.shape.chunks(); ++chunk)
      costs.chunks.push_back({quarters(), quarters(), quarters(), quarters()});
    EXPECT_NEAR(timeOf(example.timeline, costs),
                largestCycleMean(example.timeline, costs), 1e-9)
        << example.name;
  }
}

// Qi et al. 2023: with the check of the norm behind the next step, zb2p and zbv
// have no bubble at all. zb1p waits S - 1 slots on its first rank, 1f1b as long
// as with a step barrier, since its first rank begins first and ends last.
TEST(SteadyStep, hasClosedForms) {
  CostTable costs;
  costs.backward = 2;
  for (auto [s, m] : {std::pair(2, 8), {4, 8}, {4, 16}, {8, 32}}) {
    EXPECT_EQ(timeOf(generated("zb2p", s, 1, m), costs), 3 * m);
    EXPECT_EQ(timeOf(generated("zbv", s, 2, m, 1, false, Placement::V), costs),
              6 * m);
    EXPECT_EQ(timeOf(generated("zb1p", s, 1, m), costs), 3 * m + s - 1);
    EXPECT_EQ(timeOf(generated("1f1b", s, 1, m), costs), 3 * (m + s - 1));
    auto steady = steadyStep(generated("zb2p", s, 1, m), costs);
    EXPECT_EQ(steady->bubble, 0);
    EXPECT_GT(simulate(generated("zb2p", s, 1, m), costs)->bubble, 0);
  }
}

// A step of many takes what a whole run of many takes, and each of them one
// update more.
TEST(SteadyStep, isWhatManyStepsTake) {
  CostTable costs;
  costs.forward = 1.25;
  costs.backwardWeight = 0.5;
  costs.send = 0.25;
  costs.unshard = 0.75;
  costs.reduceGrad = 1.5;
  for (const Example &example : examples()) {
    Timeline timeline = addCommunication(example.timeline);
    std::string error;
    if (auto gathered = gatherWeights(timeline, {}, error))
      timeline = *gathered;
    auto ends = simulateSteps(timeline, costs, 24);
    ASSERT_TRUE(ends) << example.name;
    double time = timeOf(timeline, costs), most = 0;
    for (size_t rank = 0; rank < timeline.ranks.size(); ++rank)
      most = std::max(most, ((*ends)[24][rank] - (*ends)[12][rank]) / 12);
    EXPECT_NEAR(time, most, 1e-9) << example.name;
    auto simulation = simulate(timeline, costs);
    for (const RankUsage &rank : simulation->ranks)
      EXPECT_GE(time, rank.busy - 1e-9) << example.name;
    EXPECT_NEAR(timeOf(timeline, costs, 0.5), time + 0.5, 1e-9) << example.name;
    EXPECT_NEAR(steadyStep(timeline, costs, 0.5)->bubble,
                steadyStep(timeline, costs)->bubble, 1e-9);
  }
}

// A rank gathers weights that it has updated, so it waits for the reduction of
// the step before.
TEST(SteadyStep, endsWithItsTransfers) {
  CostTable costs;
  costs.unshard = 2;
  costs.reduceGrad = 3;
  Timeline timeline = parsed("0UNSHARD,0F0,0B0,0RESHARD,0REDUCE_GRAD\n");
  EXPECT_EQ(timeOf(timeline, costs, 0.25), 2 + 1 + 1 + 3 + 0.25);
}

// The rank with the message before it may not begin while its sends travel.
TEST(SteadyStep, endsWithItsMessages) {
  CostTable costs;
  costs.send = 4;
  Timeline timeline = parsed("0F0,0SEND_F0,0RECV_B0,0B0\n"
                             "1RECV_F0,1F0,1B0,1SEND_B0\n");
  auto ends = simulateSteps(timeline, costs, 1);
  ASSERT_TRUE(ends);
  EXPECT_EQ((*ends)[1], (StepEnds{1 + 4 + 2 + 4 + 1, 1 + 4 + 2 + 4}));
}

// One core is never idle, as some rank has work.
TEST(SteadyStep, ranksShareCores) {
  CostTable costs;
  costs.cores = 1;
  for (const char *name : {"1f1b", "zb2p"}) {
    Timeline timeline = addCommunication(generated(name, 4, 1, 8));
    double work = 0;
    for (const std::vector<Action> &row : timeline.ranks)
      work += workOf(row, costs);
    EXPECT_NEAR(timeOf(timeline, costs), work, 0.02 * work) << name;
    EXPECT_GE(timeOf(timeline, costs), work - 1e-9) << name;
  }
}

TEST(SteadyStep, saysNothingAboutADeadlock) {
  EXPECT_FALSE(steadyStep(parsed("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n"), {}));
}

// Two ranks that wait for each other in turn: steps of 3 and of 1.
TEST(StepTime, isExactOverSeveralSteps) {
  StepTimeBounds two = boundStepTime({{0, 0}, {3, 1}});
  EXPECT_EQ(two.least, 1);
  EXPECT_EQ(two.most, 3);
  EXPECT_FALSE(two.areEqual());
  StepTimeBounds three = boundStepTime({{0, 0}, {3, 1}, {4, 4}});
  EXPECT_TRUE(three.areEqual());
  EXPECT_EQ(three.most, 2);
}

} // namespace
