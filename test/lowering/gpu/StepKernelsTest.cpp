// SPDX-License-Identifier: Apache-2.0
//
// The kernels of one block that end a step, on the emulator: the bits of sums
// in f64 in the documented order, and a need for each barrier.
#include "runtime/device/cpu/CpuDevice.h"
#include "test/lowering/gpu/ServiceKernelsFixture.h"
#include "test/runtime/StepDecisions.h"

#include <array>
#include <bit>
#include <cmath>

namespace rota::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class OneBlock : public ServiceKernels {
protected:
  std::vector<std::string> sum(const Elements<float> &values, double &result) {
    Elements<double> place(1);
    know("sum", place);
    know("values", values);
    auto reports =
        run(cuda::kSumKernel, 1, place.data(), values.data(), values.size());
    result = place[0];
    return reports;
  }

  /// Sums rows of these lengths, one after the other in `values`.
  std::vector<std::string> sumRows(const Elements<float> &values,
                                   const std::vector<int64_t> &lengths,
                                   unsigned blocks, Elements<double> &sums) {
    Elements<cuda::SumRow> rows(int64_t(lengths.size()));
    const float *next = values.data();
    for (int64_t i = 0; i < rows.size(); next += lengths[i++])
      rows[i] = {next, lengths[i], &sums[i]};
    know("values", values);
    know("rows", rows);
    know("sums", sums);
    return run(cuda::kSumRowsKernel, blocks, rows.data(), rows.size());
  }

  struct Step {
    Elements<double> squares;
    Elements<int32_t> order;
    int64_t lossRanks, microbatches, lossNumbers;
    Elements<float> losses;
    double clip;
  };
  struct Outcome {
    float scale;
    double norm, weight, bad;
  };

  /// A step whose squares are ordered backwards, the order being a part of
  /// them. A loss is NaN: none is read.
  Step makeStep(int64_t orderCount, int64_t ranks, int64_t microbatches,
                double clip, int64_t lossNumbers = 2) {
    Step step{Elements<double>(orderCount + 5),
              Elements<int32_t>(orderCount),
              ranks,
              microbatches,
              lossNumbers,
              Elements<float>(lossNumbers * ranks * microbatches),
              clip};
    for (int64_t i = 0; i < step.squares.size(); ++i)
      step.squares[i] = std::exp(10 * number());
    for (int64_t i = 0; i < orderCount; ++i)
      step.order[i] = int32_t(orderCount + 2 - i);
    for (int64_t i = 0; i < step.losses.size(); ++i)
      step.losses[i] = float(kNaN);
    for (int64_t i = 1; i < step.losses.size(); i += lossNumbers)
      step.losses[i] = std::exp(5 * number());
    return step;
  }

  std::vector<std::string> finish(const Step &step, Outcome &outcome) {
    Elements<float> scale(1);
    Elements<double> result(3);
    know("squares", step.squares);
    know("order", step.order);
    know("losses", step.losses);
    know("scale", scale);
    know("result", result);
    auto reports = run(cuda::kFinishStepKernel, 1, step.squares.data(),
                       step.order.data(), step.order.size(), step.losses.data(),
                       step.lossRanks, step.microbatches, step.lossNumbers,
                       step.clip, scale.data(), result.data());
    outcome = {scale[0], result[0], result[1], result[2]};
    return reports;
  }

  static Outcome reference(const Step &step) {
    double total = 0, weight = 0, bad = -1;
    for (int64_t i = 0; i < step.order.size(); ++i) {
      double square = step.squares[step.order[i]];
      if (!std::isfinite(square) && bad < 0)
        bad = double(i);
      total += square;
    }
    for (int64_t m = 0; m < step.microbatches; ++m)
      for (int64_t r = 0; r < step.lossRanks; ++r)
        weight +=
            step.losses[step.lossNumbers * (r * step.microbatches + m) + 1];
    if (weight == 0)
      return {0, 0, 0, bad};
    double norm = std::sqrt(total) / weight;
    double factor =
        step.clip > 0 ? std::min(1.0, step.clip / (norm + 1e-6)) : 1.0;
    return {float(factor / weight), norm, weight, bad};
  }

  void checkStep(const Step &step) {
    Outcome got, expected = reference(step);
    for (const std::string &report : finish(step, got))
      ADD_FAILURE() << report;
    auto isSame = [](double a, double b) {
      return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b) ||
             (std::isnan(a) && std::isnan(b));
    };
    EXPECT_TRUE(isSame(got.scale, expected.scale))
        << got.scale << ", not " << expected.scale;
    EXPECT_TRUE(isSame(got.norm, expected.norm))
        << got.norm << ", not " << expected.norm;
    EXPECT_TRUE(isSame(got.weight, expected.weight))
        << got.weight << ", not " << expected.weight;
    EXPECT_EQ(got.bad, expected.bad);
  }

  /// Runs the kernel on the step's weights.
  std::vector<std::string> findCotangents(const Step &step,
                                          const Elements<double> &factors,
                                          Elements<float> &cotangents) {
    know("losses", step.losses);
    know("factors", factors);
    know("cotangents", cotangents);
    return run(cuda::kCotangentsKernel, 1, step.losses.data(), step.lossRanks,
               step.microbatches, step.lossNumbers, factors.data(),
               cotangents.size(), cotangents.data());
  }

  template <typename T>
  static Elements<T> elementsOf(const std::vector<T> &values) {
    Elements<T> elements(int64_t(values.size()));
    std::copy(values.begin(), values.end(), elements.data());
    return elements;
  }
  template <typename T>
  static void copyBack(const Elements<T> &elements, std::vector<T> &values) {
    std::copy_n(elements.data(), values.size(), values.begin());
  }

  /// Changes the case as Device::decideStep does.
  std::vector<std::string> decide(DecisionCase &step) {
    auto losses = elementsOf(step.losses), scalars = elementsOf(step.scalars),
         stepScalars = elementsOf(step.stepScalars);
    auto history = elementsOf(step.history), result = elementsOf(step.result);
    know("losses", losses);
    know("scalars", scalars);
    know("step's scalars", stepScalars);
    know("history", history);
    know("result", result);
    auto reports =
        run(cuda::kDecideStepKernel, 1, losses.data(), step.rows, step.calls,
            step.numbers, step.deviations, history.data(), scalars.data(),
            DecisionCase::kScalars, DecisionCase::kScale, DecisionCase::kSkip,
            stepScalars.data(), result.data());
    copyBack(stepScalars, step.stepScalars);
    copyBack(history, step.history);
    copyBack(result, step.result);
    return reports;
  }

  /// A loss and a norm in a wide range about 3 and 1.
  void draw(DecisionCase &step) {
    for (size_t i = 0; i < step.losses.size(); i += step.numbers) {
      step.losses[i + 1] = 2.5F + number();
      step.losses[i] = (3 + number()) * step.losses[i + 1];
    }
    step.result[kNormResult] = 2.5 + number();
    step.result[kWrongResult] = -1.0;
  }

  Elements<float> manyMagnitudes(int64_t count) {
    Elements<float> values(count);
    for (int64_t i = 0; i < count; ++i)
      values[i] = std::exp(30 * number());
    return values;
  }
};

TEST_F(OneBlock, Sum) {
  for (int64_t count : {0, 1, 3, 255, 256, 257, 2047, 100003}) {
    SCOPED_TRACE(count);
    Elements<float> values = manyMagnitudes(count);
    double sums[cuda::kServiceThreads] = {};
    for (int64_t i = 0; i < count; ++i)
      sums[i % cuda::kServiceThreads] += values[i];
    for (unsigned half = cuda::kServiceThreads / 2; half > 0; half /= 2)
      for (unsigned t = 0; t < half; ++t)
        sums[t] += sums[t + half];
    double got = 0;
    for (const std::string &report : sum(values, got))
      ADD_FAILURE() << report;
    EXPECT_EQ(got, sums[0]);
  }
}

TEST_F(OneBlock, FinishStep) {
  for (int64_t orderCount : {1, 3, 255, 256, 257, 1001})
    for (auto [ranks, microbatches] :
         {std::pair<int64_t, int64_t>(1, 1), {1, 257}, {3, 4}, {2, 150}})
      for (double clip : {0.0, 1e-3, 1e9}) {
        SCOPED_TRACE(testing::Message()
                     << orderCount << " squares, losses of " << ranks << " x "
                     << microbatches << ", clip " << clip);
        for (int64_t lossNumbers : {2, 5})
          checkStep(
              makeStep(orderCount, ranks, microbatches, clip, lossNumbers));
      }
}

TEST_F(OneBlock, FindsTheFirstSquareThatIsNotFinite) {
  for (double bad : {kNaN, kInfinity})
    for (int64_t first : {0, 255, 256, 700}) {
      SCOPED_TRACE(testing::Message() << bad << " at " << first);
      Step step = makeStep(1001, 2, 3, 1.0);
      step.squares[0] = bad; // not in the order
      for (int64_t i : {first, int64_t(900)})
        step.squares[step.order[i]] = bad;
      checkStep(step);
    }
  // A weight is not a square.
  Step step = makeStep(5, 2, 3, 1.0);
  step.losses[1] = float(kInfinity);
  checkStep(step);
}

TEST_F(OneBlock, SumsRowsAsOneSumEach) {
  const std::vector<int64_t> lengths = {1, 300, 5, 256, 1000};
  Elements<float> values = manyMagnitudes(1562);
  for (unsigned blocks : {1u, 2u, 7u}) {
    Elements<double> sums(int64_t(lengths.size()));
    for (const std::string &report : sumRows(values, lengths, blocks, sums))
      ADD_FAILURE() << report;
    int64_t begin = 0;
    for (size_t i = 0; i < lengths.size(); begin += lengths[i++]) {
      Elements<float> row(lengths[i]);
      std::copy_n(values.data() + begin, lengths[i], row.data());
      double expected;
      EXPECT_TRUE(sum(row, expected).empty());
      EXPECT_EQ(std::bit_cast<uint64_t>(sums[int64_t(i)]),
                std::bit_cast<uint64_t>(expected))
          << "row " << i << " by " << blocks << " blocks";
    }
  }
}

TEST_F(OneBlock, FinishesAStepInWhichNothingCounts) {
  for (double clip : {0.0, 1.0})
    for (double square : {0.0, 3.0, kNaN}) {
      SCOPED_TRACE(testing::Message() << square << ", clip " << clip);
      Step step = makeStep(300, 2, 3, clip);
      for (int64_t i = 0; i < step.losses.size(); ++i)
        step.losses[i] = 0;
      step.squares[step.order[7]] = square;
      checkStep(step);
    }
}

TEST_F(OneBlock, Cotangents) {
  for (auto [ranks, microbatches] :
       {std::pair<int64_t, int64_t>(1, 1), {1, 257}, {3, 4}, {2, 150}})
    for (auto [count, lossNumbers] :
         {std::pair<int64_t, int64_t>(1, 2), {3, 3}, {300, 2}}) {
      SCOPED_TRACE(testing::Message()
                   << count << " cotangents, losses of " << ranks << " x "
                   << microbatches << " x " << lossNumbers);
      Step step = makeStep(1, ranks, microbatches, 0.0, lossNumbers);
      double weight = reference(step).weight;
      Elements<double> factors(2 * count);
      for (int64_t i = 0; i < factors.size(); ++i)
        factors[i] = std::exp(5 * number());
      Elements<float> cotangents(count);
      for (const std::string &report :
           findCotangents(step, factors, cotangents))
        ADD_FAILURE() << report;
      for (int64_t l = 0; l < count; ++l)
        ASSERT_EQ(cotangents[l],
                  float(factors[2 * l] * weight / factors[2 * l + 1]));
    }
}

TEST_F(OneBlock, Note) {
  Elements<int32_t> places(3);
  know("places", places);
  EXPECT_EQ(run(cuda::kNoteKernel, 1, &places[1], int32_t(-7)),
            std::vector<std::string>());
  EXPECT_EQ(places[0], 0);
  EXPECT_EQ(places[1], -7);
  EXPECT_EQ(places[2], 0);
}

/// The bits of the CPU's decision, over more steps than the window has.
TEST_F(OneBlock, DecideStep) {
  for (auto [ranks, microbatches] :
       {std::pair<int64_t, int64_t>(1, 1), {1, 257}, {3, 4}, {2, 150}}) {
    SCOPED_TRACE(testing::Message() << ranks << " x " << microbatches);
    DecisionCase got(ranks, microbatches, ranks + 2);
    got.deviations = 1.5;
    std::array<int, 4> reasons{};
    for (int i = 0; i < 300; ++i) {
      draw(got);
      if (i % 50 == 49)
        got.result[kNormResult] = kInfinity;
      if (i % 70 == 69)
        got.losses[0] = float(kNaN);
      if (i % 90 == 89)
        got.result[kWrongResult] = 7.0;
      DecisionCase expected = got;
      StepDecision decision = expected.decision();
      cpuDevice().decideStep(decision);
      for (const std::string &report : decide(got))
        ADD_FAILURE() << report;
      ASSERT_EQ(got.stepScalars, expected.stepScalars) << "step " << i;
      ASSERT_EQ(got.history, expected.history) << "step " << i;
      ASSERT_EQ(got.result[kSkipResult], expected.result[kSkipResult])
          << "step " << i;
      ++reasons[size_t(got.result[kSkipResult])];
    }
    // A mean over many microbatches hardly varies, its norm does.
    for (SkipReason reason :
         {SkipReason::None, SkipReason::NotFinite, SkipReason::Norm})
      EXPECT_GT(reasons[size_t(reason)], 0);
  }
}

/// In one kernel or the other.
TEST_F(OneBlock, NeedsEachBarrier) {
  auto kind = lowering::GpuSynchronization::Barrier;
  unsigned count = lowering::countSynchronizations(gpu->get(), kind);
  ASSERT_GT(count, 2u);
  Elements<float> values = manyMagnitudes(300);
  Step step = makeStep(600, 1, 600, 1.0);
  Elements<double> factors(2);
  Elements<float> cotangents(1);
  DecisionCase decision(2, 150, 3);
  decision.deviations = 1.0;
  decision.history[0] = kHistoryLength; // so that it is read
  kernels = gpu->compile({/*checks=*/true, /*mayLeaveOut=*/true});
  ASSERT_TRUE(kernels) << gpu->takeDiagnostics();
  for (unsigned i = 0; i < count; ++i) {
    kernels->leaveOut({kind, i});
    double total;
    Outcome outcome;
    Elements<double> sums(2);
    EXPECT_FALSE(sum(values, total).empty() &&
                 sumRows(values, {100, 200}, 1, sums).empty() &&
                 finish(step, outcome).empty() &&
                 findCotangents(step, factors, cotangents).empty() &&
                 decide(decision).empty())
        << "barrier " << i << " is not needed";
  }
}

} // namespace
} // namespace rota::test
