// SPDX-License-Identifier: Apache-2.0
//
// Timelines, transfers and their results, on the model of LineModel.h.
#include "runtime/train/step/Executor.h"
#include "runtime/Error.h"
#include "runtime/data/Batches.h"
#include "runtime/device/Parallel.h"
#include "runtime/device/cpu/HostArena.h"
#include "runtime/program/Verify.h"
#include "runtime/train/Data.h"
#include "runtime/train/state/Initialize.h"
#include "runtime/train/step/Bubble.h"
#include "runtime/train/step/Loss.h"
#include "runtime/train/step/Optimizer.h"
#include "test/runtime/LineModel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

/// The ranks after initialization, with random data.
struct TestRun {
  Program program;
  LocalRanks ranks;
  std::vector<std::unique_ptr<Executor>> executors;
  Loss loss;

  explicit TestRun(Program p, int threads = 2)
      : program(std::move(p)), ranks(makeLineExecutable(program), threads),
        executors(ranks.count()) {
    ranks.run([&](Rank &rank) {
      executors[rank.number()] = std::make_unique<Executor>(rank, 20);
      initialize(rank, 5, nullptr);
      loadAccumulationStep(rank, NormalBatches(program, 5), Split::Train, 0);
    });
  }

  void run(Executor::Mode mode) {
    ranks.run([&](Rank &rank) {
      executors[rank.number()]->run(mode);
      Loss total = gatherLoss(rank);
      if (rank.number() == ranks.count() - 1)
        loss = total; // everyone has it
    });
  }

  /// The summed gradients of bias and both weights after a training run.
  std::vector<std::vector<float>> train() {
    run(Executor::Mode::Train);
    ranks.run([&](Rank &rank) {
      Optimizer(rank, OptimizerOptions()).sumGradients();
    });
    return readGradients(ranks);
  }
};

/// All divisions of the model over ranks.
std::vector<LineShape> shapes() {
  return {{1, 3},
          {2, 3},
          {1, 2, 2},
          {2, 2, 3},
          {1, 2, 1, 2},
          {2, 2, 1, 3},
          {2, 1, 2, 2},
          {1, 2, 2, 1, true},
          {2, 2, 2, 3, true},
          {1, 3, 1, 1, false, true},
          {1, 2, 2, 2, true, true},
          {2, 2, 2, 1, false, false, 2},
          {1, 2, 1, 2, true, false, 3}};
}

std::string text(const LineShape &s) {
  return fmt::format("stages {}, microbatches {}, data {}, fsdp {}, "
                     "shardOptimizer {}, offload {}, tensor {}",
                     s.stages, s.microbatches, s.data, s.fsdp, s.shardOptimizer,
                     s.offload, s.tensor);
}

std::vector<TraceEvent> eventsOf(const TestRun &run, ActionKind kind) {
  std::vector<TraceEvent> found;
  for (const auto &executor : run.executors)
    for (const TraceEvent &event : executor->times().events())
      if (run.program.stages[event.stage].kindOf(event.action) == kind)
        found.push_back(event);
  return found;
}

} // namespace

TEST(Executor, LossAndGradientsAreThoseOfTheReference) {
  for (const LineShape &shape : shapes()) {
    SCOPED_TRACE(text(shape));
    TestRun run(makeLine(shape));
    std::string error;
    ASSERT_TRUE(verify(run.program, error)) << error;
    std::vector<std::vector<float>> gradients = run.train();
    LineReference line = readLine(run.ranks);
    line.accumulate(run.ranks);
    EXPECT_NEAR(run.loss.sum, line.sum, 1e-5 * line.sum);
    EXPECT_EQ(run.loss.weight,
              shape.microbatches * shape.data * shape.fsdp * kActivation);
    for (int64_t e = 0; e < kEmbed; ++e) {
      EXPECT_NEAR(gradients[0][e], line.db[e], 1e-4);
      EXPECT_NEAR(gradients[1][e], line.dw0[e], 1e-4);
      EXPECT_NEAR(gradients[2][e], line.dw1[e], 1e-4);
    }
  }
}

TEST(Executor, BitsDependNeitherOnStagesNorOnThreads) {
  for (LineShape shape : shapes()) {
    SCOPED_TRACE(text(shape));
    TestRun one(makeLine(shape), 1);
    auto gradients = one.train();
    if (!shape.offload)
      shape.stages = 3 - shape.stages;
    for (int threads : {1, 2, 4}) {
      TestRun other(makeLine(shape), threads);
      EXPECT_EQ(other.train(), gradients);
      EXPECT_EQ(other.loss.sum, one.loss.sum);
    }
  }
}

TEST(Executor, BitsDependNotOnWhereTensorsLive) {
  TestRun whole(makeLine({1, 2, 2}));
  auto gradients = whole.train();
  for (LineShape shape : std::vector<LineShape>{{1, 2, 1, 2},
                                                {2, 2, 1, 2},
                                                {1, 2, 2, 1, true},
                                                {1, 2, 2, 1, false, true},
                                                {1, 2, 1, 2, false, true}}) {
    SCOPED_TRACE(text(shape));
    TestRun run(makeLine(shape));
    auto own = run.train();
    // Over fsdp each accumulator of the tied bias is summed over the ranks
    // before they are added up, over data after.
    if (shape.fsdp > 1)
      own[0] = gradients[0];
    EXPECT_EQ(own, gradients);
    EXPECT_EQ(run.loss.sum, whole.loss.sum);
  }
}

TEST(Executor, EvaluationLeavesGradientsAlone) {
  for (const LineShape &shape : shapes()) {
    SCOPED_TRACE(text(shape));
    TestRun run(makeLine(shape));
    for (int i = 0; i < 5; ++i)
      run.run(Executor::Mode::Evaluate);
    double evaluated = run.loss.sum;
    for (const auto &gradient : readGradients(run.ranks))
      EXPECT_EQ(gradient, std::vector<float>(kEmbed, 0.0f));
    // Evaluations add nothing to the gradients.
    auto gradients = run.train();
    EXPECT_EQ(run.loss.sum, evaluated);
    EXPECT_EQ(gradients, TestRun(makeLine(shape)).train());
  }
}

TEST(Executor, EvaluationGathersWeightsAndReducesAndCopiesNothing) {
  TestRun run(makeLine({1, 2, 1, 2, false, true}));
  run.run(Executor::Mode::Evaluate);
  // Two ranks, a forward and a backward of two layers and two microbatches,
  // two tensors each.
  EXPECT_EQ(eventsOf(run, ActionKind::Unshard).size(), 2u * 8 * 2);
  EXPECT_TRUE(eventsOf(run, ActionKind::Backward).empty());
  EXPECT_TRUE(eventsOf(run, ActionKind::ReduceGrad).empty());
  EXPECT_TRUE(eventsOf(run, ActionKind::Offload).empty());
  EXPECT_TRUE(eventsOf(run, ActionKind::Fetch).empty());
  EXPECT_EQ(
      run.executors[0]->times().transfers()[size_t(ActionKind::Unshard)].count,
      0);
  run.run(Executor::Mode::Train);
  EXPECT_EQ(eventsOf(run, ActionKind::ReduceGrad).size(), 2u * 2 * 2);
  EXPECT_EQ(eventsOf(run, ActionKind::Offload).size(), 2u * 2);
  EXPECT_EQ(eventsOf(run, ActionKind::Fetch).size(), 2u * 2);
}

/// The message of a run whose call number 1 breaks, with that layer: of two
/// pipelines, in the second, where ranks 1 and 3 have it.
static std::string failureOf(int64_t layer) {
  Program program = makeLine({2, 2, 2});
  for (ActionTemplate &actionTemplate : program.stages[1].templates)
    for (Call &call : actionTemplate.calls)
      call.layer = layer;
  RotaTask tasks[] = {lineTasks[0],
                      [](RotaContext *context, const RotaFrame *) {
                        if (rankOf(context)->number() == 3)
                          reportFailure(context, "the loss broke");
                      },
                      lineTasks[2]};
  LocalRanks ranks({&program, tasks, lineKernels}, 2);
  try {
    ranks.run([](Rank &rank) {
      Executor executor(rank, 0);
      initialize(rank, 1, nullptr);
      executor.run(Executor::Mode::Train);
      gatherLoss(rank);
    });
    return "expected a RunError";
  } catch (const RunError &error) {
    return error.what();
  }
}

TEST(Executor, AFailureNamesRankStageChunkMicrobatchActionAndLayer) {
  std::string action = "rank 3: stage 1, chunk 1, microbatch 0, F (action 2): ";
  EXPECT_EQ(failureOf(-1), action + "the loss broke");
  EXPECT_EQ(failureOf(7), action + "layer 7: the loss broke");
}

TEST(Executor, ALossThatIsNotFiniteNamesItsRankAndMicrobatch) {
  TestRun run(makeLine({1, 2, 2}));
  addressOf<float>(run.ranks.at(1),
                   run.program.stages[0].inputData)[kActivation] = 1e30f;
  try {
    run.run(Executor::Mode::Train);
    FAIL() << "expected a RunError";
  } catch (const RunError &error) {
    EXPECT_NE(std::string(error.what())
                  .find("rank 1: the loss of microbatch 1 is not finite"),
              std::string::npos)
        << error.what();
  }
}

TEST(Executor, RecordsComputeActionsAndTransfers) {
  TestRun run(makeLine(2, 2));
  run.run(Executor::Mode::Train);
  for (ActionKind kind : {ActionKind::Forward, ActionKind::Backward})
    EXPECT_EQ(eventsOf(run, kind).size(), 4u); // 2 stages, 2 microbatches
  for (ActionKind kind : {ActionKind::SendForward, ActionKind::RecvForward,
                          ActionKind::SendBackward, ActionKind::RecvBackward})
    EXPECT_EQ(eventsOf(run, kind).size(), 2u);
  for (const auto &executor : run.executors)
    for (const TraceEvent &event : executor->times().events())
      EXPECT_LE(event.begin, event.end);
}

TEST(Executor, TransfersAreHiddenOrWaitedFor) {
  TestRun run(makeLine({1, 2, 1, 2}));
  run.run(Executor::Mode::Train);
  for (ActionKind kind : {ActionKind::Unshard, ActionKind::ReduceGrad}) {
    const TransferTimes &times =
        run.executors[0]->times().transfers()[size_t(kind)];
    EXPECT_EQ(times.count, kind == ActionKind::Unshard ? 16 : 4);
    EXPECT_LE(times.waited, times.seconds);
    EXPECT_GE(times.hidden(), 0.0);
    EXPECT_LE(times.hidden(), 1.0);
  }
  EXPECT_EQ(TransferTimes({2, 4.0, 1.0}).hidden(), 0.75);
}

TEST(Bubble, IsOneMinusBusyOverMakespan) {
  // Rank 0: F0 F1 .. B0 B1; rank 1: .. F0 B0 F1 B1, each a second: rank 1
  // starts after one second and ends at 5, rank 0 waits for B1 until 5 and ends
  // at 6.
  Program program = makeLine(2, 2);
  std::vector<std::vector<double>> seconds;
  for (const Stage &rank : program.stages) {
    seconds.emplace_back();
    for (size_t a = 0; a < rank.actions.size(); ++a)
      seconds.back().push_back(isCompute(rank.kindOf(int(a))) ? 1.0 : 0.0);
  }
  EXPECT_NEAR(measuredBubble(program, seconds), 1.0 - 8.0 / 12.0, 1e-12);
}

TEST(Arena, IsZeroAndKnowsHowFarItWasWritten) {
  HostArena arena(1000000);
  EXPECT_EQ(arena.highWater(), 0);
  static_cast<char *>(arena.at(12345))[0] = 1;
  EXPECT_EQ(arena.highWater(), 12352);
  EXPECT_GE(arena.residentBytes(), 4096);
  EXPECT_EQ(arena.at(-1), nullptr);
}
