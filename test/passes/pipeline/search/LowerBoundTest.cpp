// SPDX-License-Identifier: Apache-2.0
//
// The lower bound against closed forms, and against random orders.
#include "passes/pipeline/search/LowerBound.h"
#include "passes/pipeline/search/ListScheduler.h"
#include "passes/pipeline/search/OrderRun.h"
#include "passes/pipeline/search/Rules.h"
#include "test/passes/pipeline/Examples.h"

using namespace rota::pipe;

namespace {

double boundOf(const Shape &shape, bool split, int activations = 0,
               CostTable costs = {}) {
  costs.backward = 2;
  return lowerBoundOf(Problem(shape, costs, split, activations));
}

TEST(LowerBound, isThatOfTheBusiestRank) {
  // Fill and drain of the last rank: 3 F and 3 B of the others.
  EXPECT_DOUBLE_EQ(boundOf({4, 1, 8}, false), (8 + 3) * 3);
  EXPECT_DOUBLE_EQ(boundOf({4, 2, 8}, false), (2 * 8 + 3) * 3);
  // With split backwards W is at the end.
  EXPECT_DOUBLE_EQ(boundOf({4, 1, 8}, true), 3 * 8 + 3);
  // One microbatch: its path, and the last W.
  EXPECT_DOUBLE_EQ(boundOf({4, 2, 1, Placement::V}, true), 2 * 8 + 1);
}

TEST(LowerBound, countsMemory) {
  // With 2 microbatches at a time the second ends 3 after the first; 3 rounds
  // follow, each as long as a microbatch alone.
  EXPECT_DOUBLE_EQ(boundOf({4, 1, 8}, false, 2), (4 + 1) * 3 + 3 * 4 * 3);
  // Activations are held for 4p + 4 on each rank of a V; 2 places, of which the
  // other is used one F later, and left one W earlier.
  EXPECT_DOUBLE_EQ(boundOf({4, 2, 8, Placement::V}, true, 2),
                   (8 * (4 * 4 + 4) + 2) / 2.0 + 3);
}

TEST(LowerBound, countsMessages) {
  CostTable costs;
  costs.send = 0.5;
  EXPECT_DOUBLE_EQ(boundOf({4, 1, 8}, false, 0, costs), (8 + 3) * 3 + 6 * 0.5);
}

// All orders keep it, and run as the simulator runs their timelines.
TEST(LowerBound, isBelowRandomOrders) {
  std::mt19937 random;
  for (int i = 0; i < 400; ++i) {
    auto below = [&](int n) { return int(random() % n); };
    Shape shape{1 + below(5), 1 + below(3), 1 + below(9),
                below(2) ? Placement::V : Placement::Loop};
    CostTable costs;
    costs.send = below(3) / 2.0;
    for (int chunk = 0; chunk < shape.chunks(); ++chunk)
      costs.chunks.push_back(
          {1.0 + below(4), 1.0 + below(4), 1.0 + below(4), 1.0 + below(4)});
    int bound = below(2) ? shape.repeats + below(4) : 0;
    Problem problem(shape, costs, below(2), bound);
    Budget budget{1};
    Order order = scheduleByPriority(
        problem, prioritiesOf(problem, randomRule(problem, random)), budget);
    double makespan = OrderRun(problem).run(order);
    EXPECT_LE(lowerBoundOf(problem), makespan);
    Timeline timeline = timelineOf(problem, order);
    EXPECT_EQ(verified(timeline), "");
    auto simulation = simulate(timeline, costs);
    ASSERT_TRUE(simulation);
    EXPECT_DOUBLE_EQ(simulation->makespan, makespan);
    for (int rank = 0; rank < shape.stages; ++rank) {
      EXPECT_LE(simulation->ranks[rank].peakLive, problem.bound);
      EXPECT_EQ(simulation->ranks[rank].peakLive,
                peakActivations(problem, order[rank]));
    }
    EXPECT_EQ(orderOf(problem, timeline), order);
  }
}

TEST(OrderRun, refusesOrdersThatDoNotComplete) {
  Problem problem({1, 1, 1}, CostTable(), true, 0);
  EXPECT_EQ(OrderRun(problem).run({{0, 1, 2}}), 3);
  EXPECT_EQ(OrderRun(problem).run({{0, 2, 1}}), kNever); // W before I
  EXPECT_EQ(OrderRun(problem).run({{1, 0, 2}}), kNever); // I before F
}

} // namespace
