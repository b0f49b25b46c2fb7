// SPDX-License-Identifier: Apache-2.0
//
// The halves of a pair: at the same time, with collectives inside of both, and
// with a failure in either.
#include "runtime/Error.h"
#include "runtime/train/rank/Rank.h"
#include "runtime/train/step/Executor.h"
#include "test/runtime/LineModel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

using namespace rota;
using namespace rota::test;

namespace {

constexpr int kRanks = 2;
constexpr int kInput = 4, kOutput = 5; // fields of a frame

/// A pair of an F, which calls task 0, and a B, which calls task 1, several
/// times in a row. Each sums its input [4] over the ranks to its output.
Program makePair(int pairs) {
  Program program;
  program.mesh = {{"stage", 1}, {"tensor", kRanks}};
  program.microbatches = 2;
  Collective sum;
  sum.kind = Collective::Kind::AllReduce;
  sum.axes = {1};
  sum.size = 4;
  program.collectives = {sum};
  program.tasks = {"forward", "backward"};
  program.stages.resize(1);
  Stage &stage = program.stages[0];
  stage.arenaBytes = 256;
  for (int task : {0, 1}) {
    ActionTemplate half;
    half.kind = task ? ActionKind::Backward : ActionKind::Forward;
    half.startsPair = task == 0;
    Call call;
    call.task = task;
    call.frame[kInput] = 128 * task;
    call.frame[kOutput] = 128 * task + 64;
    half.calls = {call};
    stage.templates.push_back(half);
  }
  for (int i = 0; i < pairs; ++i)
    for (int half : {0, 1})
      stage.addAction(half, half, {}, {});
  return program;
}

std::atomic<int> backwards; // backwards of rank 0 that have ended

/// The inputs of rank 0 begin with 0 and with 100.
bool isOfFirstRank(const RotaFrame *frame) {
  float input = *static_cast<const float *>(frame->input);
  return input == 0.0f || input == 100.0f;
}

void sumTask(RotaContext *context, const RotaFrame *frame) {
  rotaWaitCollective(
      context, rotaStartCollective(context, 0, frame->input, frame->output));
}

void runAll(LocalRanks &ranks) {
  for (int r = 0; r < kRanks; ++r)
    for (int half : {0, 1})
      for (int i = 0; i < 4; ++i)
        addressOf<float>(ranks.at(r), 128 * half)[i] =
            static_cast<float>(100 * half + 10 * r + i);
  ranks.run([](Rank &rank) { Executor(rank, 0).run(Executor::Mode::Train); });
  for (int r = 0; r < kRanks; ++r)
    for (int half : {0, 1})
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(addressOf<float>(ranks.at(r), 128 * half + 64)[i],
                  static_cast<float>(200 * half + 10 + 2 * i));
}

} // namespace

// One core for both halves of both ranks: one computes while the other waits.
TEST(Pair, CollectivesOfBothHalvesEndOnAnyNumberOfCores) {
  Program program = makePair(200);
  RotaTask tasks[] = {sumTask, sumTask};
  for (int threads : {1, 2, 4}) {
    LocalRanks ranks({&program, tasks, nullptr}, threads);
    runAll(ranks);
  }
}

// On rank 0 the first half waits for the end of the second one, so its
// collective comes later there, and earlier on rank 1.
TEST(Pair, HalvesRunAtOnceAndInterleaveAsTheyLike) {
  Program program = makePair(1);
  backwards = 0;
  RotaTask tasks[] = {[](RotaContext *context, const RotaFrame *frame) {
                        while (isOfFirstRank(frame) && backwards == 0)
                          std::this_thread::yield();
                        sumTask(context, frame);
                      },
                      [](RotaContext *context, const RotaFrame *frame) {
                        sumTask(context, frame);
                        if (isOfFirstRank(frame))
                          ++backwards;
                      }};
  LocalRanks ranks({&program, tasks, nullptr}, 4);
  runAll(ranks);
}

TEST(Pair, AFailureNamesItsHalf) {
  Program program = makePair(1);
  constexpr const char *kNames[] = {
      "rank 0: stage 0, chunk 0, microbatch 0, F (action 0): no more",
      "rank 0: stage 0, chunk 0, microbatch 1, B (action 1): no more"};
  RotaTask fails = [](RotaContext *context, const RotaFrame *frame) {
    if (isOfFirstRank(frame))
      return reportFailure(context, "no more");
    sumTask(context, frame);
  };
  for (int half : {0, 1}) {
    RotaTask tasks[] = {half == 0 ? fails : sumTask,
                        half == 1 ? fails : sumTask};
    LocalRanks ranks({&program, tasks, nullptr}, 2);
    try {
      runAll(ranks);
      FAIL() << "expected a RunError";
    } catch (const RunError &error) {
      EXPECT_STREQ(error.what(), kNames[half]);
    }
  }
}

TEST(Pair, TimeOfBothHalvesCountsOnce) {
  Program program = makePair(3);
  RotaTask rest = [](RotaContext *, const RotaFrame *) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  RotaTask tasks[] = {rest, rest};
  LocalRanks ranks({&program, tasks, nullptr}, 4);
  ranks.run([](Rank &rank) {
    Executor executor(rank, 0);
    auto begin = std::chrono::steady_clock::now();
    executor.run(Executor::Mode::Train);
    std::chrono::duration<double> wall =
        std::chrono::steady_clock::now() - begin;
    double busy = 0.0;
    for (double seconds : executor.times().meanSeconds())
      busy += seconds;
    EXPECT_LE(busy, wall.count());
    EXPECT_GE(busy, 3 * 0.02);
  });
}
