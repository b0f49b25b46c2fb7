// SPDX-License-Identifier: Apache-2.0
//
// Timelines, channels and the numbers that come out, on the model of
// LineModel.h.
#include "runtime/train/Executor.h"
#include "runtime/Error.h"
#include "runtime/data/Batches.h"
#include "runtime/program/Verify.h"
#include "runtime/train/Initialize.h"
#include "runtime/train/Train.h"
#include "test/runtime/LineModel.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

/// A machine after one training run on random data.
struct TestRun {
  Program program;
  Machine machine;
  Executor executor;
  TestRun(Program p, int threads)
      : program(std::move(p)),
        machine(makeLineExecutable(program), threads, false),
        executor(machine, true) {
    initialize(machine, 5, nullptr);
    loadBatch(machine, NormalBatches(program, 5), Split::Train, 0);
  }
};

LineReference reference(TestRun &run) {
  LineReference line = readLine(run.machine);
  const Stage &first = run.program.stages.front();
  const Stage &last = run.program.stages.back();
  for (int64_t m = 0; m < run.program.microbatches; ++m)
    line.accumulate(
        run.machine.at<float>(0, first.inputData) + m * kActivation,
        run.machine.at<float>(run.machine.ranks() - 1, last.targetData) +
            m * kActivation);
  return line;
}

std::vector<float> gradient(TestRun &run, int rank, int update) {
  const Place &place = run.program.stages[rank].updates[update].gradients[0];
  const float *values = run.machine.at<float>(place);
  return std::vector<float>(values, values + kEmbed);
}

} // namespace

TEST(Executor, LossAndGradientsAreThoseOfTheReference) {
  for (int ranks : {1, 2}) {
    TestRun run(makeLine(ranks, 3), 2);
    std::string error;
    ASSERT_TRUE(verify(run.program, error)) << error;
    run.executor.run(Executor::Mode::Train);
    sumGradients(run.machine);
    LineReference line = reference(run);
    Executor::Loss loss = run.executor.loss();
    EXPECT_NEAR(loss.sum, line.sum, 1e-5 * line.sum);
    EXPECT_EQ(loss.weight, 3 * kActivation);
    for (int64_t e = 0; e < kEmbed; ++e) {
      EXPECT_NEAR(gradient(run, 0, 0)[e], line.dw0[e], 1e-4);
      EXPECT_NEAR(gradient(run, ranks - 1, ranks == 2 ? 0 : 1)[e], line.dw1[e],
                  1e-4);
      EXPECT_NEAR(gradient(run, 0, ranks == 2 ? 1 : 2)[e], line.db[e], 1e-4);
    }
  }
}

TEST(Executor, BitsDependNeitherOnRanksNorOnThreads) {
  TestRun one(makeLine(1, 4), 1);
  one.executor.run(Executor::Mode::Train);
  sumGradients(one.machine);
  for (int threads : {1, 2, 4}) {
    TestRun two(makeLine(2, 4), threads);
    two.executor.run(Executor::Mode::Train);
    sumGradients(two.machine);
    EXPECT_EQ(one.executor.loss().sum, two.executor.loss().sum);
    EXPECT_EQ(gradient(one, 0, 0), gradient(two, 0, 0));
    EXPECT_EQ(gradient(one, 0, 1), gradient(two, 1, 0));
    EXPECT_EQ(gradient(one, 0, 2), gradient(two, 0, 1));
  }
}

TEST(Executor, EvaluationLeavesGradientsAlone) {
  TestRun run(makeLine(2, 2), 2);
  for (int i = 0; i < 20; ++i)
    run.executor.run(Executor::Mode::Evaluate);
  EXPECT_EQ(gradient(run, 0, 0), std::vector<float>(kEmbed, 0.0f));
  double evaluated = run.executor.loss().sum;
  run.executor.run(Executor::Mode::Train);
  EXPECT_EQ(run.executor.loss().sum, evaluated);
}

TEST(Executor, AFailureNamesRankChunkMicrobatchAndAction) {
  Program program = makeLine(2, 2);
  RotaTask tasks[] = {lineTasks[0],
                      [](RotaContext *context, const RotaFrame *) {
                        reportFailure(context, "the loss broke");
                      },
                      lineTasks[2]};
  Machine machine({&program, tasks, lineKernels}, 2, false);
  Executor executor(machine, false);
  initialize(machine, 1, nullptr);
  try {
    executor.run(Executor::Mode::Train);
    FAIL() << "expected a RunError";
  } catch (const RunError &error) {
    EXPECT_STREQ(error.what(), "rank 1: chunk 1, microbatch 0, F (action 2): "
                               "the loss broke");
  }
}

TEST(Executor, ALossThatIsNotFiniteNamesItsMicrobatch) {
  TestRun run(makeLine(1, 2), 1);
  run.machine.at<float>(0, run.program.stages[0].inputData)[kActivation] =
      1e30f;
  run.executor.run(Executor::Mode::Train);
  try {
    run.executor.loss();
    FAIL() << "expected a RunError";
  } catch (const RunError &error) {
    EXPECT_NE(std::string(error.what())
                  .find("the loss of microbatch 1 is not finite"),
              std::string::npos)
        << error.what();
  }
}

TEST(Executor, RecordsTheComputeActions) {
  TestRun run(makeLine(2, 2), 2);
  run.executor.run(Executor::Mode::Train);
  EXPECT_EQ(run.executor.events().size(), 8u); // 2 ranks, F and B, 2 each
  for (const TraceEvent &event : run.executor.events())
    EXPECT_LE(event.begin, event.end);
}

TEST(Bubble, IsOneMinusBusyOverMakespan) {
  // Rank 0: F0 F1 .. B0 B1; rank 1: .. F0 B0 F1 B1, each a second: rank 1
  // starts after one second and ends at 5, rank 0 waits for B1 until 5 and ends
  // at 6.
  Program program = makeLine(2, 2);
  std::vector<std::vector<double>> seconds;
  for (const Stage &rank : program.stages) {
    seconds.emplace_back();
    for (const Action &action : rank.actions)
      seconds.back().push_back(isCompute(action.kind) ? 1.0 : 0.0);
  }
  EXPECT_NEAR(measuredBubble(program, seconds), 1.0 - 8.0 / 12.0, 1e-12);
}

TEST(Arena, IsZeroAndKnowsHowFarItWasWritten) {
  Arena arena(1000000);
  EXPECT_EQ(arena.highWater(), 0);
  arena.data()[12345] = 1;
  EXPECT_EQ(arena.highWater(), 12352);
  EXPECT_GE(arena.residentBytes(), 4096);
  EXPECT_EQ(arena.at(-1), nullptr);
}
