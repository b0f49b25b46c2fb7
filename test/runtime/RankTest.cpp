// SPDX-License-Identifier: Apache-2.0
//
// Collectives inside tasks, and the end of all ranks when one fails.
#include "runtime/train/rank/Rank.h"
#include "runtime/Error.h"
#include "runtime/train/step/Executor.h"
#include "test/runtime/LineModel.h"
#include "test/runtime/collective/RandomRows.h"

#include <gtest/gtest.h>

using namespace rota;
using namespace rota::test;

namespace {

constexpr int kRanks = 3;

/// A task on each of three ranks: input [4] summed over them to output, twice.
Program makeProgram() {
  Program program;
  program.mesh = {{"stage", 1}, {"tensor", kRanks}};
  Collective sum;
  sum.kind = Collective::Kind::AllReduce;
  sum.axes = {1};
  sum.size = 4;
  program.collectives = {sum};
  program.tasks = {"sum"};
  program.stages.resize(1);
  program.stages[0].arenaBytes = 256;
  ActionTemplate action;
  Call call;
  call.frame[4] = 0;  // input
  call.frame[5] = 64; // output
  action.calls = {call, call};
  program.stages[0].addAction(action, 0);
  return program;
}

void sumTask(RotaContext *context, const RotaFrame *frame) {
  rotaWaitCollective(
      context, rotaStartCollective(context, 0, frame->input, frame->output));
}

/// Moves the random rows of the seed at `input` there and back, and again:
/// three exchanges are open at once, and end in another order.
void exchangeTask(RotaContext *context, const RotaFrame *frame) {
  uint64_t seed = *static_cast<const uint64_t *>(frame->input);
  std::vector<RowsOfRank> rows;
  std::vector<std::vector<char>> results;
  std::vector<int64_t> started;
  for (bool gathersRows : {false, true, false}) {
    rows.push_back(randomRows(seed, rankOf(context)->number(), kRanks,
                              /*rowBytes=*/300, gathersRows));
    results.emplace_back(rows.back().expected.size(), 1);
  }
  auto start = [&](size_t i) {
    started.push_back(rotaStartRowExchange(
        context, 0, &rows[i].form, rows[i].source.data(), rows[i].sent.data(),
        rows[i].received.data(), results[i].data()));
  };
  start(0);
  start(1);
  rotaWaitCollective(context, started[0]);
  start(2);
  rotaWaitCollective(context, started[2]);
  rotaWaitCollective(context, started[1]);
  for (size_t i = 0; i < rows.size(); ++i)
    EXPECT_EQ(results[i], rows[i].expected) << "seed " << seed;
}

} // namespace

TEST(Rank, KnowsItsStageAndItsPeers) {
  Program program = makeLine({2, 1, 2, 3});
  LocalRanks ranks(makeLineExecutable(program), 1);
  ASSERT_EQ(ranks.count(), 12);
  Rank &rank = ranks.at(10); // data 1, stage 1, fsdp 1
  EXPECT_EQ(rank.coordinates(), (std::vector<int64_t>{1, 1, 1, 0}));
  EXPECT_EQ(rank.stageNumber(), 1);
  EXPECT_EQ(rank.peer(0), 7);
  EXPECT_EQ(rank.peer(1), 10);
}

TEST(Rank, ATaskGivesItsCoreBackWhileItsCollectiveWaits) {
  Program program = makeProgram();
  RotaTask tasks[] = {sumTask};
  for (int threads : {1, 2, 4}) { // one core for three ranks would not do
    LocalRanks ranks({&program, tasks, nullptr}, threads);
    for (int r = 0; r < kRanks; ++r)
      for (int i = 0; i < 4; ++i)
        addressOf<float>(ranks.at(r), 0)[i] = static_cast<float>(10 * r + i);
    ranks.run([](Rank &rank) { Executor(rank, 0).run(Executor::Mode::Train); });
    for (int r = 0; r < kRanks; ++r)
      for (int i = 0; i < 4; ++i)
        EXPECT_EQ(addressOf<float>(ranks.at(r), 64)[i], 30.0f + 3.0f * i);
  }
}

TEST(Rank, ATaskExchangesTheFilledRowsOfExperts) {
  Program program = makeProgram();
  RotaTask tasks[] = {exchangeTask};
  for (int threads : {1, 4}) {
    LocalRanks ranks({&program, tasks, nullptr}, threads);
    for (uint64_t seed = 0; seed < 40; ++seed) {
      for (int r = 0; r < kRanks; ++r)
        *addressOf<uint64_t>(ranks.at(r), 0) = seed;
      ranks.run(
          [](Rank &rank) { Executor(rank, 0).run(Executor::Mode::Train); });
    }
  }
}

TEST(Rank, AFailureElsewhereEndsTheTaskThatWaits) {
  Program program = makeProgram();
  RotaTask tasks[] = {[](RotaContext *context, const RotaFrame *frame) {
    if (rankOf(context)->number() == 1)
      return reportFailure(context, "no more");
    sumTask(context, frame);
  }};
  LocalRanks ranks({&program, tasks, nullptr}, 2);
  std::vector<std::string> messages(kRanks);
  try {
    ranks.run([&](Rank &rank) {
      try {
        Executor(rank, 0).run(Executor::Mode::Train);
      } catch (const RunError &error) {
        messages[rank.number()] = error.what();
        throw;
      }
    });
    FAIL() << "expected a RunError";
  } catch (const RunError &) {
  }
  // All name the rank that failed.
  for (const std::string &message : messages)
    EXPECT_EQ(message, "rank 1: stage 0, chunk 0, microbatch 0, F (action 0): "
                       "no more");
}
