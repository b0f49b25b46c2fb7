// SPDX-License-Identifier: Apache-2.0
//
// Routes of programs, and the order in which ranks make them.
#include "runtime/collective/nccl/NcclPlan.h"
#include "test/runtime/LineModel.h"

#include <gtest/gtest.h>
#include <set>

using namespace rota;
using namespace rota::test;

TEST(NcclPlan, AStepHasNoRankTwice) {
  NcclPlan plan;
  plan.add({Stream::Forward, true, {0, 1}});
  plan.add({Stream::Forward, true, {2, 3}});
  plan.add({Stream::Forward, true, {1, 2}});
  plan.add({Stream::Forward, true, {1, 0}});
  plan.add({Stream::Forward, true, {0, 1}}); // again
  plan.add({Stream::Task, false, {0}});      // alone
  plan.add({Stream::Task, false, {0, 1, 2, 3}});
  ASSERT_EQ(plan.steps().size(), 4u);
  EXPECT_EQ(plan.steps()[0].size(), 2u);
  EXPECT_EQ(plan.steps()[1].front().ranks, (std::vector<int>{1, 2}));
  EXPECT_EQ(plan.steps()[2].front().ranks, (std::vector<int>{1, 0}));
  EXPECT_EQ(plan.mostRoutes(), 4); // rank 1
  EXPECT_EQ(plan.mostGroups(), 1);
}

static std::set<NcclRoute> routesOf(const LineShape &shape) {
  NcclPlan plan = planRoutes(makeLine(shape));
  std::set<NcclRoute> routes;
  for (const std::vector<NcclRoute> &step : plan.steps())
    routes.insert(step.begin(), step.end());
  return routes;
}

// Two stages, each with two ranks along `data`. The embedding's gradients and
// copies go between the stages.
TEST(NcclPlan, StagesHaveMessages) {
  EXPECT_EQ(routesOf({.stages = 2, .data = 2}),
            (std::set<NcclRoute>{{Stream::Step, false, {0, 1, 2, 3}},
                                 {Stream::Step, false, {0, 2}},
                                 {Stream::Step, false, {1, 3}},
                                 {Stream::Step, true, {0, 1}},
                                 {Stream::Step, true, {1, 0}},
                                 {Stream::Step, true, {2, 3}},
                                 {Stream::Step, true, {3, 2}},
                                 {Stream::Forward, true, {0, 1}},
                                 {Stream::Forward, true, {2, 3}},
                                 {Stream::Backward, true, {1, 0}},
                                 {Stream::Backward, true, {3, 2}}}));
}

// Weights are stored in parts along `fsdp`, and the optimizer's along `data`.
TEST(NcclPlan, PartsAreGathered) {
  EXPECT_EQ(routesOf({.data = 2, .fsdp = 2, .shardOptimizer = true}),
            (std::set<NcclRoute>{{Stream::Weights, false, {0, 1}},
                                 {Stream::Weights, false, {2, 3}},
                                 {Stream::Gradients, false, {0, 1}},
                                 {Stream::Gradients, false, {2, 3}},
                                 {Stream::Step, false, {0, 1, 2, 3}},
                                 {Stream::Step, false, {0, 2}},
                                 {Stream::Step, false, {1, 3}}}));
}

// A collective that no parameter names is called in tasks.
TEST(NcclPlan, TasksHaveGroupsOfTheirOwn) {
  Program program = makeLine({.stages = 1, .tensor = 2});
  Collective sum;
  sum.kind = Collective::Kind::AllReduce;
  sum.axes = {3};
  program.collectives.push_back(sum);
  NcclPlan plan = planRoutes(program);
  ASSERT_EQ(plan.steps().size(), 2u);
  EXPECT_EQ(plan.steps()[0].front(), (NcclRoute{Stream::Task, false, {0, 1}}));
  // Halves of pairs run at the same time.
  program.stages[0].templates[0].startsPair = true;
  plan = planRoutes(program);
  ASSERT_EQ(plan.steps().size(), 3u);
  EXPECT_EQ(plan.steps()[1].front(),
            (NcclRoute{Stream::PairTask, false, {0, 1}}));
}
