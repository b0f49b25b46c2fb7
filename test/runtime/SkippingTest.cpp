// SPDX-License-Identifier: Apache-2.0
//
// Steps that update nothing, on the line model over ranks.
#include "runtime/train/step/Skipping.h"
#include "runtime/Error.h"
#include "runtime/train/Data.h"
#include "runtime/train/state/Initialize.h"
#include "runtime/train/step/Executor.h"
#include "runtime/train/step/Loss.h"
#include "runtime/train/step/Optimizer.h"
#include "test/runtime/LineModel.h"
#include "test/runtime/TemporaryFolder.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace rota;
using namespace rota::test;

namespace {

/// The ranks of a line model that train on batches by number.
class SkipRun {
public:
  SkipRun(const LineShape &shape, const SkipOptions &options)
      : program(makeLine(shape)), ranks(makeLineExecutable(program), 2) {
    ranks.run([](Rank &rank) { initialize(rank, 3, nullptr); });
    for (int r = 0; r < ranks.count(); ++r)
      optimizers.push_back(std::make_unique<Optimizer>(
          ranks.at(r), OptimizerOptions(), options));
  }

  /// A step on that batch, of which a number is not finite where it `isBad`.
  /// Its result is read by readAll().
  void step(int64_t batch, bool isBad) {
    ranks.run([&](Rank &rank) {
      loadAccumulationStep(rank, NormalBatches(program, 3), Split::Train,
                           batch * program.timelineSequences());
      // One rank alone sees it.
      if (isBad && rank.number() == ranks.count() - 1 &&
          rank.stage().targetData >= 0)
        addressOf<float>(rank, rank.stage().targetData)[0] = NAN;
      Optimizer &optimizer = *optimizers[rank.number()];
      optimizer.begin(0.05);
      Executor(rank, 0).run(Executor::Mode::Train);
      startLoss(rank);
      optimizer.sumGradients();
      optimizer.update();
      rank.device().read(rank.runtimeAt(rank.places().result), results,
                         rank.number() == 0 ? int64_t(sizeof results) : 0);
    });
    unread.emplace_back(std::begin(results), std::end(results));
  }

  /// Reads the results of all steps but the last `late`.
  std::vector<SkipReason> read(size_t late) {
    std::vector<SkipReason> reasons;
    for (; unread.size() > late; unread.erase(unread.begin()))
      for (auto &optimizer : optimizers)
        reasons.push_back(optimizer->skips().read(unread.front()));
    return reasons;
  }
  const std::vector<double> &lastResult() const { return unread.back(); }

  Optimizer &optimizer(int rank) { return *optimizers[rank]; }

  /// Masters, and the states and gradients of the last one.
  std::vector<std::vector<float>> tensors() {
    auto all = readMasters(ranks);
    for (int r = 0; r < ranks.count(); ++r) {
      Rank &rank = ranks.at(r);
      for (const Update &update : rank.stage().updates) {
        auto bytes = program.parameters[update.parameter].stateBytes;
        all.push_back(rank.read<float>(update.states, bytes / 4));
      }
    }
    return all;
  }

  bool gradientsAreZero() {
    for (const auto &tensor : readGradients(ranks))
      for (float value : tensor)
        if (value != 0.0F)
          return false;
    return true;
  }

  Program program;
  LocalRanks ranks;

private:
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  double results[kStepResults];
  std::vector<std::vector<double>> unread;
};

constexpr SkipOptions skipping{/*nonfinite=*/true};

} // namespace

/// Whether the host knows of the skipped step before the next one or after it,
/// the run is that without the step: parameters and states keep their bits, and
/// the next step is the same update of Adam.
TEST(Skipping, ASkippedStepIsNone) {
  for (const LineShape &shape :
       {LineShape{1}, {2}, {2, 2, 2, 1, true}, {1, 2, 2, 2, true}})
    for (size_t late : {0, 1}) {
      SkipRun plain(shape, skipping), run(shape, skipping);
      for (int64_t batch : {0, 1, 2, 3}) {
        plain.step(batch, false);
        plain.read(0);
      }
      std::vector<std::vector<float>> before;
      int64_t skipped = 0;
      for (int64_t batch : {0, 1, 9, 9, 2, 9, 3}) {
        run.step(batch, /*isBad=*/batch == 9);
        if (batch == 1)
          before = run.tensors();
        if (batch == 9 && ++skipped < 3)
          EXPECT_EQ(run.tensors(), before);
        EXPECT_TRUE(run.gradientsAreZero());
        run.read(late);
      }
      run.read(0);
      EXPECT_EQ(run.tensors(), plain.tensors());
      for (int r = 0; r < run.ranks.count(); ++r)
        EXPECT_EQ(run.optimizer(r).skips().skipped(), 3);
    }
}

TEST(Skipping, WithoutTheOptionSuchAStepIsAnError) {
  SkipRun run({2}, SkipOptions());
  run.step(0, true);
  std::vector<double> result = run.lastResult();
  EXPECT_EQ(run.read(0), std::vector(2, SkipReason::None));
  EXPECT_EQ(messageOf<RunError>([&] { run.optimizer(0).readNorm(result); }),
            "the gradient of 'layers.0.weight' is not finite");
  SkipRun other({2}, skipping);
  other.step(0, true);
  result = other.lastResult();
  EXPECT_EQ(other.read(0), std::vector(2, SkipReason::NotFinite));
  EXPECT_FALSE(std::isfinite(other.optimizer(0).readNorm(result)));
}

TEST(Skipping, EndsARunThatSkipsEachStep) {
  SkipRun run({1}, skipping);
  for (int64_t i = 1; i < Skipping::kMostSkipped; ++i) {
    run.step(0, true);
    run.read(0);
  }
  run.step(0, false);
  run.read(0);
  for (int64_t i = 1; i < Skipping::kMostSkipped; ++i) {
    run.step(0, true);
    run.read(0);
  }
  run.step(0, true);
  EXPECT_EQ(messageOf<RunError>([&] { run.read(0); }),
            "100 steps in a row were skipped, step 200 because its loss or "
            "gradient is not finite");
}

/// A run goes on elsewhere with the numbers of the steps before.
TEST(Skipping, IsSavedAndRestored) {
  SkipRun whole({2}, skipping), second({2}, skipping);
  for (SkipRun *run : {&whole, &second})
    for (auto [batch, isBad] : {std::pair(0, false), {1, true}}) {
      run->step(batch, isBad);
      run->read(0);
    }
  RunState saved, other;
  saved.step = 2;
  whole.optimizer(0).skips().save(saved);
  whole.optimizer(1).skips().save(other);
  EXPECT_EQ(saved.values, other.values);
  const std::vector<double> &values = saved.values.at("skipped_steps");
  ASSERT_EQ(values.size(), size_t(2 + kHistoryNumbers));
  EXPECT_EQ(values[0], 1.0); // skipped
  EXPECT_EQ(values[1], 1.0); // in a row
  EXPECT_EQ(values[2], 1.0); // in the history
  for (int r : {0, 1}) {
    Skipping &skips = second.optimizer(r).skips();
    RunState none = saved;
    none.values["skipped_steps"].assign(values.size(), 0.0);
    skips.restore(none);
    EXPECT_EQ(skips.skipped(), 0);
    skips.restore(saved);
    second.optimizer(r).continueAfter(2);
    EXPECT_EQ(skips.skipped(), 1);
    RunState again;
    skips.save(again);
    EXPECT_EQ(again.values, saved.values);
  }
  whole.step(2, false);
  second.step(2, false);
  EXPECT_EQ(whole.tensors(), second.tensors());
}

TEST(Skipping, RefusesOtherNumbers) {
  SkipRun run({1}, skipping);
  Skipping &skips = run.optimizer(0).skips();
  skips.restore(RunState()); // state of a run that skipped none
  RunState state;
  skips.save(state);
  state.step = 5;
  auto refusal = [&](size_t place, double number) {
    RunState wrong = state;
    wrong.values["skipped_steps"][place] = number;
    return messageOf<InputError>([&] { skips.restore(wrong); });
  };
  EXPECT_EQ(refusal(0, 6.0), "checkpoint value 'skipped_steps': expected an "
                             "integer from 0 to 5, got 6");
  EXPECT_EQ(refusal(0, 0.5), "checkpoint value 'skipped_steps': expected an "
                             "integer from 0 to 5, got 0.5");
  EXPECT_EQ(refusal(1, 1.0), "checkpoint value 'skipped_steps': expected an "
                             "integer from 0 to 0, got 1");
  EXPECT_EQ(refusal(2, -1.0), "checkpoint value 'skipped_steps': expected an "
                              "integer from 0 to 5, got -1");
  state.values["skipped_steps"].pop_back();
  EXPECT_EQ(messageOf<InputError>([&] { skips.restore(state); }),
            "checkpoint value 'skipped_steps': expected 259 numbers, got 258");
}

TEST(Skipping, IsNotInTheStateOfARunWithoutIt) {
  SkipRun run({1}, SkipOptions());
  RunState state;
  run.optimizer(0).skips().save(state);
  EXPECT_TRUE(state.values.empty());
}

TEST(Skipping, NeedsUpdatesThatCanBeSkipped) {
  Program program = makeLine(1, 1);
  program.scalars.pop_back();
  LocalRanks ranks(makeLineExecutable(program), 1);
  EXPECT_EQ(messageOf<InputError>(
                [&] { Optimizer(ranks.at(0), OptimizerOptions(), skipping); }),
            "'skip-nonfinite': the updates of this program cannot be skipped");
}
