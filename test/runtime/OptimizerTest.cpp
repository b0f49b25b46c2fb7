// SPDX-License-Identifier: Apache-2.0
//
// AdamW over ranks against a plain one in f64.
#include "runtime/train/Optimizer.h"
#include "runtime/data/Batches.h"
#include "runtime/train/Executor.h"
#include "runtime/train/Initialize.h"
#include "runtime/train/Train.h"
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

  void step(std::vector<double> &w, const std::vector<double> &gradient,
            double scale, const AdamW &a, double rate, double decay, int t) {
    for (int64_t e = 0; e < kEmbed; ++e) {
      double g = gradient[e] * scale;
      m[e] = a.beta1 * m[e] + (1 - a.beta1) * g;
      v[e] = a.beta2 * v[e] + (1 - a.beta2) * g * g;
      double first = m[e] / (1 - std::pow(a.beta1, t));
      double second = v[e] / (1 - std::pow(a.beta2, t));
      w[e] -= rate * (first / (std::sqrt(second) + a.epsilon) + decay * w[e]);
    }
  }
};

double squares(const std::vector<double> &values) {
  double sum = 0.0;
  for (double value : values)
    sum += value * value;
  return sum;
}

void compareWithPlain(int ranks, double clip) {
  Program program = makeLine(ranks, 2);
  Machine machine(makeLineExecutable(program), 2, false);
  Executor executor(machine, false);
  AdamW adamw;
  adamw.gradientClip = clip;
  Optimizer optimizer(machine, adamw);
  initialize(machine, 3, nullptr);
  NormalBatches batches(program, 3);
  LineReference line = readLine(machine);
  PlainAdamW first, second, bias;
  for (int t = 1; t <= 10; ++t) {
    loadBatch(machine, batches, Split::Train, t - 1);
    line.dw0 = line.dw1 = line.db = std::vector<double>(kEmbed, 0.0);
    line.sum = line.weight = 0.0;
    for (int64_t m = 0; m < 2; ++m)
      line.accumulate(
          machine.at<float>(0, program.stages[0].inputData) + m * kActivation,
          machine.at<float>(ranks - 1, program.stages.back().targetData) +
              m * kActivation);
    executor.run(Executor::Mode::Train);
    Executor::Loss loss = executor.loss();
    ASSERT_NEAR(loss.sum / loss.weight, line.sum / line.weight, 1e-5);
    double norm = optimizer.step(0.05, loss.weight);
    double expected =
        std::sqrt(squares(line.dw0) + squares(line.dw1) + squares(line.db)) /
        line.weight;
    ASSERT_NEAR(norm, expected, 1e-5 * expected);
    double scale = (clip > 0 ? std::min(1.0, clip / (expected + 1e-6)) : 1.0) /
                   line.weight;
    first.step(line.w0, line.dw0, scale, adamw, 0.05, 0.1, t);
    second.step(line.w1, line.dw1, scale, adamw, 0.05, 0.1, t);
    bias.step(line.b, line.db, scale, adamw, 0.05, 0.0, t);
    LineReference now = readLine(machine);
    for (int64_t e = 0; e < kEmbed; ++e) {
      ASSERT_NEAR(now.w0[e], line.w0[e], 1e-5) << "step " << t;
      ASSERT_NEAR(now.w1[e], line.w1[e], 1e-5) << "step " << t;
      ASSERT_NEAR(now.b[e], line.b[e], 1e-5) << "step " << t;
    }
  }
}

} // namespace

TEST(Optimizer, IsAdamWOnOneRankAndOnTwo) {
  compareWithPlain(1, 0.0);
  compareWithPlain(2, 0.0);
}

TEST(Optimizer, ClipsByTheGlobalNorm) {
  compareWithPlain(1, 0.05);
  compareWithPlain(2, 0.05);
}

TEST(Optimizer, BitsDependNeitherOnRanksNorOnThreads) {
  std::vector<std::vector<double>> results;
  for (auto [ranks, threads] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}}) {
    Program program = makeLine(ranks, 2);
    Machine machine(makeLineExecutable(program), threads, false);
    Executor executor(machine, false);
    Optimizer optimizer(machine, AdamW());
    initialize(machine, 3, nullptr);
    NormalBatches batches(program, 3);
    for (int t = 0; t < 5; ++t) {
      loadBatch(machine, batches, Split::Train, t);
      executor.run(Executor::Mode::Train);
      optimizer.step(0.01, executor.loss().weight);
    }
    LineReference line = readLine(machine);
    std::vector<double> all = line.w0;
    all.insert(all.end(), line.w1.begin(), line.w1.end());
    all.insert(all.end(), line.b.begin(), line.b.end());
    results.push_back(all);
  }
  for (const auto &result : results)
    EXPECT_EQ(result, results[0]);
}

TEST(LearningRate, WarmsUpAndFallsAlongACosine) {
  AdamW adamw;
  adamw.learningRate = 1.0;
  adamw.minLearningRate = 0.1;
  adamw.warmupSteps = 10;
  EXPECT_DOUBLE_EQ(learningRateAt(adamw, 1, 110), 0.1);
  EXPECT_DOUBLE_EQ(learningRateAt(adamw, 9, 110), 0.9);
  EXPECT_DOUBLE_EQ(learningRateAt(adamw, 10, 110), 1.0);
  EXPECT_DOUBLE_EQ(learningRateAt(adamw, 60, 110), 0.55);
  EXPECT_DOUBLE_EQ(learningRateAt(adamw, 110, 110), 0.1);
  adamw.warmupSteps = 200; // longer than the run
  EXPECT_DOUBLE_EQ(learningRateAt(adamw, 100, 110), 0.5);
}
