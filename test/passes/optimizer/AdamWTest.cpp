// SPDX-License-Identifier: Apache-2.0
//
// The kernels of AdamW, as the step's end runs them, against the formula in
// f64.
#include "ir/rota/model/Update.h"
#include "lowering/kernels/Passes.h"
#include "passes/optimizer/Passes.h"
#include "test/interpreter/TestModule.h"
#include "test/lowering/kernels/KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

using namespace rota::interpreter;
using rota::test::KernelHarness;

namespace {

using Values = std::vector<double>;

struct Settings {
  double rate = 0.01, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-6, decay = 0.1,
         scale = 0.5, skip = 0.0;

  /// The trainer's value of a scalar in step t.
  double valueOf(mlir::rota::ScalarAttr scalar, int t) const {
    std::map<llvm::StringRef, double> options = {{"beta1", beta1},
                                                 {"beta2", beta2},
                                                 {"epsilon", epsilon},
                                                 {"weight-decay", decay}};
    double x = scalar.getOption() ? options.at(scalar.getOption()) : 0.0;
    switch (scalar.getKind()) {
    case mlir::rota::ScalarKind::LearningRate:
      return rate;
    case mlir::rota::ScalarKind::GradientScale:
      return scale;
    case mlir::rota::ScalarKind::Option:
      return x;
    case mlir::rota::ScalarKind::Complement:
      return 1.0 - x;
    case mlir::rota::ScalarKind::Correction:
      return 1.0 - std::pow(x, t);
    case mlir::rota::ScalarKind::Skip:
      return skip;
    }
    return NAN;
  }
};

/// A parameter with its states.
struct Step {
  Values p, m, v;
};

/// Loshchilov and Hutter 2019, algorithm 2.
Step expectedStep(const Step &before, const Values &gradient, bool decays,
                  const Settings &s, int t) {
  Step after = before;
  for (size_t i = 0; i < gradient.size(); ++i) {
    double g = s.scale * gradient[i], &m = after.m[i], &v = after.v[i];
    m = s.beta1 * m + (1 - s.beta1) * g;
    v = s.beta2 * v + (1 - s.beta2) * g * g;
    double step = m / (1 - std::pow(s.beta1, t)) /
                  (std::sqrt(v / (1 - std::pow(s.beta2, t))) + s.epsilon);
    after.p[i] -= s.rate * (step + (decays ? s.decay : 0.0) * after.p[i]);
  }
  return after;
}

/// The functions of a parameter of this shape, compiled.
class Compiled {
public:
  Compiled(const std::string &shape, const std::string &compute)
      : module(text(shape, compute)) {
    rota::lowering::registerKernelsPasses();
    mlir::rota::registerOptimizerPasses();
    if (!module ||
        failed(module.run("build-updates{optimizer=adamw},form-kernels")))
      return;
    auto param = *module.get().getOps<mlir::rota::ParamOp>().begin();
    function = mlir::rota::UpdateFunction::of(param).getFunction();
    update = KernelHarness::compile(function);
    squares = KernelHarness::compile(mlir::rota::squaresOf(param));
  }

  std::vector<Tensor> run(const Step &before, const Values &gradient,
                          const Settings &settings, int t) {
    std::map<llvm::StringRef, const Values *> states = {
        {"first_moment", &before.m}, {"second_moment", &before.v}};
    std::vector<Tensor> arguments;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto type =
          mlir::cast<mlir::RankedTensorType>(function.getArgumentTypes()[i]);
      Tensor &argument = arguments.emplace_back(Tensor(type.getShape()));
      auto state =
          function.getArgAttrOfType<mlir::rota::StateAttr>(i, "rota.state");
      auto scalar =
          function.getArgAttrOfType<mlir::rota::ScalarAttr>(i, "rota.scalar");
      for (int64_t e = 0; e < argument.size(); ++e)
        argument[e] = state    ? (*states.at(state.getName()))[e]
                      : scalar ? settings.valueOf(scalar, t)
                      : i == 0 ? before.p[e]
                               : gradient[e];
    }
    return update->runInPlace(arguments);
  }

  TestModule module;
  mlir::func::FuncOp function;
  std::unique_ptr<KernelHarness> update, squares;

private:
  static std::string text(const std::string &shape,
                          const std::string &compute) {
    int64_t dimensions = std::count(shape.begin(), shape.end(), 'x');
    std::string axes;
    for (int64_t i = 0; i <= dimensions; ++i)
      axes += std::string(i ? ", " : "") + "\"axis\"";
    std::string read = "tensor<" + shape + "x" + compute + ">";
    return "rota.param @p : tensor<" + shape + "xf32> axes [" + axes +
           "] init #rota.constant<value = 0.0>\n" + "func.func @f() -> " +
           read + " {\n %p = rota.read @p : " + read +
           "\n return %p : " + read + "\n}";
  }
};

Values values(int64_t size, double step, int64_t period, double first) {
  Values result(size);
  for (int64_t i = 0; i < size; ++i)
    result[i] = float(step * double(i % period) + first);
  return result;
}

void checkOneStep(const std::string &shape, int64_t size, int64_t rows,
                  const std::string &compute) {
  Compiled compiled(shape, compute);
  ASSERT_TRUE(compiled.update && compiled.squares)
      << compiled.module.takeDiagnostics();
  EXPECT_EQ(compiled.update->countCalls(), 1);
  EXPECT_EQ(compiled.squares->countCalls(), 1);
  Step before{values(size, 0.25, 13, -1), values(size, 0.01, 5, 0),
              values(size, 0.02, 3, 0.1)};
  Values gradient = values(size, 0.5, 7, -1.3);
  Settings settings;
  auto results = compiled.run(before, gradient, settings, 3);
  bool isRounded = compute == "bf16";
  ASSERT_EQ(results.size(), isRounded ? 5u : 4u);
  bool decays = shape.find('x') != std::string::npos;
  Step after = expectedStep(before, gradient, decays, settings, 3);
  for (int64_t i = 0; i < size; ++i) {
    ASSERT_NEAR(results[0][i], after.p[i], 1e-6) << i;
    ASSERT_NEAR(results[1][i], after.m[i], 1e-6) << i;
    ASSERT_NEAR(results[2][i], after.v[i], 1e-6) << i;
    ASSERT_EQ(results[3][i], 0.0) << i;
    if (isRounded) {
      ASSERT_EQ(results[4][i], roundToBF16(results[0][i])) << i;
    }
  }
  auto type = mlir::cast<mlir::RankedTensorType>(
      compiled.function.getArgumentTypes()[0]);
  Tensor tensor(type.getShape());
  for (int64_t i = 0; i < size; ++i)
    tensor[i] = gradient[i];
  Tensor sums = compiled.squares->run({tensor})[0];
  ASSERT_EQ(sums.size(), rows);
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    for (int64_t i = row * size / rows; i < (row + 1) * size / rows; ++i)
      sum += gradient[i] * gradient[i];
    EXPECT_NEAR(sums[row], sum, 1e-6 * sum);
  }
}

TEST(AdamW, Matrix) { checkOneStep("5x33", 165, 5, "f32"); }

TEST(AdamW, MatrixWithCopy) { checkOneStep("7x96", 672, 7, "bf16"); }

TEST(AdamW, Vector) { checkOneStep("40", 40, 1, "bf16"); }

TEST(AdamW, MoreDimensions) { checkOneStep("2x3x4", 24, 6, "f32"); }

/// Neither a factor nor a gradient that is not finite gets into the state.
TEST(AdamW, ASkippedUpdateChangesNothing) {
  for (const char *shape : {"5x33", "165"}) {
    Compiled compiled(shape, "bf16");
    ASSERT_TRUE(compiled.update) << compiled.module.takeDiagnostics();
    EXPECT_EQ(compiled.update->countCalls(), 1);
    Step before{values(165, 0.25, 13, -1), values(165, 0.01, 5, 0),
                values(165, 0.02, 3, 0.1)};
    Values gradient = values(165, 0.5, 7, -1.3);
    gradient[3] = NAN;
    gradient[160] = INFINITY;
    Settings settings;
    settings.skip = 1.0;
    settings.scale = NAN;
    auto results = compiled.run(before, gradient, settings, 3);
    for (int64_t i = 0; i < 165; ++i) {
      ASSERT_EQ(results[0][i], before.p[i]) << i;
      ASSERT_EQ(results[1][i], float(before.m[i])) << i;
      ASSERT_EQ(results[2][i], float(before.v[i])) << i;
      ASSERT_EQ(results[3][i], 0.0) << i;
      ASSERT_EQ(results[4][i], roundToBF16(before.p[i])) << i;
    }
  }
}

/// In f32, 1 - beta2 has at most 24 - log2(1 / (1 - beta2)) bits left.
TEST(AdamW, TenStepsOfAnyDecayAreThoseInF64) {
  for (double beta2 : {0.95, 0.999, 0.99999, 0.9999999}) {
    Compiled compiled("2x8", "f32");
    ASSERT_TRUE(compiled.update) << compiled.module.takeDiagnostics();
    Settings settings;
    settings.beta2 = beta2;
    settings.epsilon = 1e-12;
    settings.decay = 0.0;
    Values zeros(16, 0.0);
    Step step{zeros, zeros, zeros}, expected = step;
    for (int t = 1; t <= 10; ++t) {
      Values gradient = values(16, 0.3, 5, 0.1 * t);
      expected = expectedStep(expected, gradient, true, settings, t);
      auto results = compiled.run(step, gradient, settings, t);
      for (int64_t i = 0; i < 16; ++i) {
        step.p[i] = results[0][i];
        step.m[i] = results[1][i];
        step.v[i] = results[2][i];
        ASSERT_NEAR(step.p[i], expected.p[i], 2e-6 * expected.p[i] * -1.0)
            << "beta2 " << beta2 << ", step " << t;
        ASSERT_NEAR(step.v[i], expected.v[i], 2e-6 * expected.v[i])
            << "beta2 " << beta2 << ", step " << t;
      }
    }
  }
}

} // namespace
