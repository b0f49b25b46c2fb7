// SPDX-License-Identifier: Apache-2.0
//
// Ten steps of the update of a bias of choices, in f64 by the interpreter and
// in f32 by the kernels, against the formula written down in f64.
#include "ir/rota/model/Update.h"
#include "lowering/kernels/Passes.h"
#include "passes/optimizer/Passes.h"
#include "test/interpreter/TestModule.h"
#include "test/lowering/kernels/KernelHarness.h"

#include <gtest/gtest.h>

#include <numeric>

using namespace rota::interpreter;
using rota::test::KernelHarness;

namespace {

using Values = std::vector<double>;

constexpr int64_t kExperts = 6;
constexpr double kRate = 0.125; // exact in f32, and so are its sums
constexpr const char *text = R"(
rota.stack @layers layers = 1 pattern [@a] {
  rota.layer @a {
    rota.param @bias : tensor<6xf32> axes ["choice"] init #rota.constant<value = 0.0>
    func.func @forward(%z: tensor<1x4x6xf32>) -> tensor<1x4x6xf32> {
      %b = rota.read @bias : tensor<6xf32>
      %w, %e = rota.route %z bias %b sigmoid scaling = 1.0 bias_rate = 0.125 : (tensor<1x4x6xf32>, tensor<6xf32>) -> (tensor<1x4x2xf32>, tensor<1x4x2xi32>)
      return %z : tensor<1x4x6xf32>
    }
  }
})";

class RouterBias : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    rota::lowering::registerKernelsPasses();
    mlir::rota::registerOptimizerPasses();
    ASSERT_TRUE(module);
    // A group's factors do not reach the bias either.
    ASSERT_TRUE(succeeded(
        module.run("build-updates{optimizer=adamw groups=bias=lr:3,decay:7}")))
        << module.takeDiagnostics();
    module.get().walk([&](mlir::rota::ParamOp param) {
      update = mlir::rota::UpdateFunction::of(param).getFunction();
      squares = mlir::rota::squaresOf(param);
    });
    // The parameter, its gradient and `skip`: neither states nor rates.
    ASSERT_EQ(update.getNumArguments(), 3u);
    if (!GetParam())
      return;
    ASSERT_TRUE(succeeded(module.run("form-kernels")))
        << module.takeDiagnostics();
    kernels = KernelHarness::compile(update);
    ASSERT_TRUE(kernels) << module.takeDiagnostics();
  }

  /// The bias after a step with these loads; checks that the gradient is
  /// zeroed.
  Values step(const Values &bias, const Values &loads, double skip = 0.0) {
    std::vector<Tensor> arguments{Tensor({kExperts}), Tensor({kExperts}),
                                  Tensor::scalar(skip)};
    arguments[0].elements = bias;
    arguments[1].elements = loads;
    std::vector<Tensor> results;
    if (kernels) {
      results = kernels->runInPlace(arguments);
    } else {
      auto run = runFunction(update, arguments);
      EXPECT_TRUE(succeeded(run)) << module.takeDiagnostics();
      if (failed(run))
        return {};
      results.assign(run->begin(), run->end());
    }
    EXPECT_EQ(results[1].elements, Values(kExperts, 0.0));
    return results[0].elements;
  }

  TestModule module{text};
  mlir::func::FuncOp update, squares;
  std::unique_ptr<KernelHarness> kernels;
};

/// Loads of a step: some above their mean, some below, one step all equal.
Values loadsOf(int t) {
  Values loads(kExperts);
  for (int64_t i = 0; i < kExperts; ++i)
    loads[i] = t == 4 ? 7 : double((i * i + 3 * i * t + t) % 11);
  return loads;
}

TEST_P(RouterBias, MovesByTheRateTowardsTheMean) {
  Values bias(kExperts), expected;
  for (int64_t i = 0; i < kExperts; ++i)
    bias[i] = 0.25 * double(i) - 0.5;
  expected = bias;
  int up = 0, down = 0;
  for (int t = 1; t <= 10; ++t) {
    Values loads = loadsOf(t);
    double mean = std::accumulate(loads.begin(), loads.end(), 0.0) / kExperts;
    for (int64_t i = 0; i < kExperts; ++i) {
      int sign = (mean > loads[i]) - (mean < loads[i]);
      expected[i] += kRate * sign;
      up += sign > 0;
      down += sign < 0;
    }
    bias = step(bias, loads);
    ASSERT_EQ(bias, expected) << t;
  }
  EXPECT_GT(up, 10);
  EXPECT_GT(down, 10);
}

/// An expert whose load is the mean stays, also where counts are large.
TEST_P(RouterBias, TheMeanIsExact) {
  Values loads = {2000001, 2000001, 2000000, 2000002, 2000001, 2000001};
  EXPECT_EQ(step(Values(kExperts, 0.0), loads),
            (Values{0, 0, kRate, -kRate, 0, 0}));
}

TEST_P(RouterBias, ASkippedStepChangesNothing) {
  Values bias = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(step(bias, loadsOf(1), /*skip=*/1.0), bias);
}

TEST_P(RouterBias, LoadsAreInNoNorm) {
  Tensor loads({kExperts});
  loads.elements = loadsOf(1);
  auto run = runFunction(squares, {loads});
  ASSERT_TRUE(succeeded(run)) << module.takeDiagnostics();
  EXPECT_EQ((*run)[0].elements, Values{0.0});
}

INSTANTIATE_TEST_SUITE_P(Optimizer, RouterBias, ::testing::Bool());

} // namespace
