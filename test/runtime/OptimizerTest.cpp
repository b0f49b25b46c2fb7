// SPDX-License-Identifier: Apache-2.0
//
// An AdamW of the line model over ranks, against a plain one in f64.
#include "runtime/train/step/Optimizer.h"
#include "runtime/data/Batches.h"
#include "runtime/train/Data.h"
#include "runtime/train/state/Initialize.h"
#include "runtime/train/step/Executor.h"
#include "runtime/train/step/Loss.h"
#include "test/runtime/LineModel.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace rota;
using namespace rota::test;

namespace {

/// One tensor's AdamW state.
struct PlainAdamW {
  std::vector<double> m = std::vector<double>(kEmbed, 0.0);
  std::vector<double> v = std::vector<double>(kEmbed, 0.0);

  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8; // the program's

  void step(std::vector<double> &w, const std::vector<double> &gradient,
            double scale, double rate, double decay, int t) {
    for (int64_t e = 0; e < kEmbed; ++e) {
      double g = gradient[e] * scale;
      m[e] = beta1 * m[e] + (1 - beta1) * g;
      v[e] = beta2 * v[e] + (1 - beta2) * g * g;
      double first = m[e] / (1 - std::pow(beta1, t));
      double second = v[e] / (1 - std::pow(beta2, t));
      w[e] -= rate * (first / (std::sqrt(second) + epsilon) + decay * w[e]);
    }
  }
};

double squares(const std::vector<double> &values) {
  double sum = 0.0;
  for (double value : values)
    sum += value * value;
  return sum;
}

/// In this step no loss has a sum or a weight, where a test asks for it.
constexpr int kEmptyStep = 4;

void eraseLosses(Rank &rank) {
  if (int64_t loss = rank.stage().loss; loss >= 0)
    std::fill_n(addressOf<float>(rank, loss), 2 * rank.program().microbatches,
                0.0F);
}

/// Ten steps of all ranks; calls check(step, loss, norm) after each.
template <typename Check>
void train(LocalRanks &ranks, const OptimizerOptions &options, double rate,
           Check check, bool hasEmptyStep = false) {
  ranks.run([](Rank &rank) { initialize(rank, 3, nullptr); });
  std::vector<std::unique_ptr<Optimizer>> optimizers;
  for (int r = 0; r < ranks.count(); ++r)
    optimizers.push_back(std::make_unique<Optimizer>(ranks.at(r), options));
  for (int t = 1; t <= 10; ++t) {
    Loss loss;
    double norm = 0.0;
    ranks.run([&](Rank &rank) {
      NormalBatches batches(rank.program(), 3);
      loadAccumulationStep(rank, batches, Split::Train,
                           (t - 1) * rank.program().timelineSequences());
      Optimizer &optimizer = *optimizers[rank.number()];
      optimizer.begin(rate);
      Executor(rank, 0).run(Executor::Mode::Train);
      if (hasEmptyStep && t == kEmptyStep)
        eraseLosses(rank);
      Loss total = gatherLoss(rank);
      optimizer.sumGradients();
      optimizer.update();
      double result[kStepResults];
      rank.device().read(rank.runtimeAt(rank.places().result), result,
                         sizeof result);
      double ownNorm = optimizer.readNorm(result);
      if (rank.number() == ranks.count() - 1) {
        loss = total;
        norm = ownNorm;
      }
    });
    check(t, loss, norm);
  }
}

void compareWithPlain(const LineShape &shape, double clip, double beta2 = 0.95,
                      bool hasEmptyStep = false) {
  Program program = makeLine(shape);
  LocalRanks ranks(makeLineExecutable(program), 2);
  OptimizerOptions options;
  options.gradientClip = clip;
  options.own = {{"beta2", "", beta2, 0.0, 1.0}};
  ranks.run([](Rank &rank) { initialize(rank, 3, nullptr); });
  LineReference line = readLine(ranks);
  PlainAdamW first, second, bias;
  first.beta2 = second.beta2 = bias.beta2 = beta2;
  auto check = [&](int t, Loss loss, double norm) {
    line.dw0 = line.dw1 = line.db = std::vector<double>(kEmbed, 0.0);
    line.sum = line.weight = 0.0;
    line.accumulate(ranks);
    double share = hasEmptyStep && t == kEmptyStep ? 0.0 : 1.0 / line.weight;
    ASSERT_NEAR(loss.mean(), line.sum * share, 1e-5);
    double expected =
        std::sqrt(squares(line.dw0) + squares(line.dw1) + squares(line.db)) *
        share;
    ASSERT_NEAR(norm, expected, 1e-5 * expected);
    double scale =
        (clip > 0 ? std::min(1.0, clip / (expected + 1e-6)) : 1.0) * share;
    first.step(line.w0, line.dw0, scale, 0.05, 0.1, t);
    second.step(line.w1, line.dw1, scale, 0.05, 0.1, t);
    bias.step(line.b, line.db, scale, 0.05, 0.0, t);
    LineReference now = readLine(ranks);
    for (int64_t e = 0; e < kEmbed; ++e) {
      ASSERT_NEAR(now.w0[e], line.w0[e], 1e-5) << "step " << t;
      ASSERT_NEAR(now.w1[e], line.w1[e], 1e-5) << "step " << t;
      ASSERT_NEAR(now.b[e], line.b[e], 1e-5) << "step " << t;
    }
  };
  train(ranks, options, 0.05, check, hasEmptyStep);
}

std::vector<LineShape> shapes() {
  return {{1},
          {2},
          {1, 2, 2},
          {2, 2, 1, 2},
          {1, 2, 1, 3},
          {1, 2, 2, 1, true},
          {2, 2, 2, 1, true},
          {2, 2, 2, 2, true},
          {2, 2, 2, 1, true, false, 2},
          {2, 2, 1, 1, true, false, 2},
          {1, 2, 1, 2, true, false, 3}};
}

/// Ranks that outnumber the cores would change places after each tensor.
TEST(Optimizer, HoldsACoreForAllTensors) {
  Program program = makeLine(LineShape{1});
  LocalRanks ranks(makeLineExecutable(program), 1); // no helpers
  ranks.run([](Rank &rank) {
    initialize(rank, 3, nullptr);
    Optimizer optimizer(rank, OptimizerOptions());
    NormalBatches batches(rank.program(), 3);
    loadAccumulationStep(rank, batches, Split::Train, 0);
    optimizer.begin(0.05);
    Executor(rank, 0).run(Executor::Mode::Train);
    gatherLoss(rank);
    optimizer.sumGradients();
    ASSERT_EQ(rank.stage().updates.size(), 3U);
    int64_t before = rank.cores().timesLocked();
    optimizer.update();
    // For the squares and for the updates, taken and given back.
    EXPECT_EQ(rank.cores().timesLocked() - before, 2 * 2);
  });
}

} // namespace

TEST(Optimizer, IsAdamWHoweverTheStateIsSpread) {
  for (const LineShape &shape : shapes())
    compareWithPlain(shape, 0.0);
}

TEST(Optimizer, ClipsByTheGlobalNorm) {
  for (const LineShape &shape : shapes())
    compareWithPlain(shape, 0.05);
}

/// Scalars near 1 or 0 are rounded to f32 once, not computed there.
TEST(Optimizer, DecaysAndMovesOnWhereNothingCounts) {
  for (double clip : {0.0, 0.1})
    for (const LineShape &shape : shapes())
      compareWithPlain(shape, clip, 0.95, /*hasEmptyStep=*/true);
}

TEST(Optimizer, ForgetsAsSlowlyAsAsked) {
  for (double beta2 : {0.95, 0.999, 0.99999, 0.9999999})
    compareWithPlain({1}, 0.0, beta2);
}

TEST(Optimizer, BitsDependNeitherOnStagesNorOnThreads) {
  for (LineShape shape : shapes()) {
    std::vector<std::vector<std::vector<float>>> results;
    for (auto [stages, threads] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 4}}) {
      shape.stages = stages;
      Program program = makeLine(shape);
      LocalRanks ranks(makeLineExecutable(program), threads);
      train(ranks, OptimizerOptions(), 0.01, [](int, Loss, double) {});
      results.push_back(readMasters(ranks));
    }
    for (const auto &result : results)
      EXPECT_EQ(result, results[0]);
  }
}

TEST(Optimizer, RefreshesEveryCopy) {
  Program program = makeLine({2, 2, 2, 1, true});
  LocalRanks ranks(makeLineExecutable(program), 2);
  train(ranks, OptimizerOptions(), 0.05, [](int, Loss, double) {});
  LineReference line = readLine(ranks);
  for (int r = 0; r < ranks.count(); ++r) {
    Rank &rank = ranks.at(r);
    int stage = rank.stageNumber();
    const Update &weight = rank.stage().updates[0];
    int64_t bias = stage ? program.stages[0].updates[1].copies[0].offset
                         : rank.stage().updates[1].stored;
    for (int64_t e = 0; e < kEmbed; ++e) {
      EXPECT_EQ(rank.read<float>(weight.stored, kEmbed)[e],
                (stage ? line.w1 : line.w0)[e]);
      EXPECT_EQ(rank.read<float>(bias, kEmbed)[e], line.b[e]);
    }
  }
}
