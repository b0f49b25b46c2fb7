// SPDX-License-Identifier: Apache-2.0
//
// Ten steps of each optimizer's update function, in f64 by the interpreter and
// in f32 by the kernels, against the formulas written down in f64.
#include "ir/rota/model/Update.h"
#include "lowering/kernels/Passes.h"
#include "passes/optimizer/Passes.h"
#include "test/interpreter/TestModule.h"
#include "test/lowering/kernels/KernelHarness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string_view>

using namespace rota::interpreter;
using mlir::rota::ScalarKind;
using rota::test::KernelHarness;

namespace {

using Values = std::vector<double>;

constexpr double kRate = 0.01, kScale = 0.5, kDecay = 0.1;
constexpr int kSteps = 10;

/// The options' values that the trainer would have.
using OptionValues = std::map<std::string, double>;

/// The update function of one parameter, with the parameter and its states.
class Update {
public:
  /// A parameter `name` of this shape ("5x33") with these axes in a layer, by
  /// build-updates{`settings`}.
  Update(const std::string &shape, const std::string &settings,
         OptionValues options, const std::string &name = "w",
         const std::string &axes = "")
      : module(text(shape, name, axes)), options(std::move(options)) {
    rota::lowering::registerKernelsPasses();
    mlir::rota::registerOptimizerPasses();
    if (!module || failed(module.run("build-updates{" + settings + "}"))) {
      ADD_FAILURE() << module.takeDiagnostics();
      return;
    }
    module.get().walk([&](mlir::rota::ParamOp param) {
      function = mlir::rota::UpdateFunction::of(param).getFunction();
    });
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto state = stateOf(i))
        states[state.getName().str()] =
            Values(size(), state.getInitial().convertToDouble());
    p = Values(size());
    for (int64_t i = 0; i < size(); ++i)
      p[i] = float(0.25 * double(i % 13) - 1.0);
  }

  void useKernels() {
    ASSERT_TRUE(succeeded(module.run("form-kernels")))
        << module.takeDiagnostics();
    kernels = KernelHarness::compile(function);
    ASSERT_TRUE(kernels) << module.takeDiagnostics();
  }

  int64_t size() {
    return elementCount(
        mlir::cast<mlir::RankedTensorType>(function.getArgumentTypes()[0])
            .getShape());
  }

  void step(const Values &gradient, int t) {
    std::vector<Tensor> arguments;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto type =
          mlir::cast<mlir::RankedTensorType>(function.getArgumentTypes()[i]);
      Tensor &argument = arguments.emplace_back(Tensor(type.getShape()));
      auto scalar =
          function.getArgAttrOfType<mlir::rota::ScalarAttr>(i, "rota.scalar");
      for (int64_t e = 0; e < argument.size(); ++e)
        argument[e] = scalar       ? valueOf(scalar, t)
                      : stateOf(i) ? states[stateOf(i).getName().str()][e]
                      : i == 0     ? p[e]
                                   : gradient[e];
    }
    std::vector<Tensor> results;
    if (kernels) {
      results = kernels->runInPlace(arguments);
    } else {
      auto run = runFunction(function, arguments);
      ASSERT_TRUE(succeeded(run)) << module.takeDiagnostics();
      results.assign(run->begin(), run->end());
    }
    p = results[0].elements;
    size_t result = 1;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (stateOf(i))
        states[stateOf(i).getName().str()] = results[result++].elements;
    for (double zeroed : results[result].elements)
      ASSERT_EQ(zeroed, 0.0);
  }

  Values p;
  std::map<std::string, Values> states;
  double skip = 0.0;

private:
  static std::string text(const std::string &shape, const std::string &name,
                          std::string axes) {
    if (axes.empty()) {
      axes = "\"a\"";
      for (int64_t i = 0; i < std::count(shape.begin(), shape.end(), 'x'); ++i)
        axes += ", \"a\"";
    }
    std::string type = "tensor<" + shape + "xf32>",
                symbol = "@\"" + name + "\"";
    return "rota.stack @layers layers = 1 pattern [@a] {\n rota.layer @a {\n"
           "rota.param " +
           symbol + " : " + type + " axes [" + axes +
           "] init #rota.constant<value = 0.0>\n" +
           "func.func @forward(%x: tensor<8xf32>) -> tensor<8xf32> {\n" +
           "%p = rota.read " + symbol + " : " + type +
           "\n return %x : tensor<8xf32>\n}\n}\n}\n" + attention;
  }

  /// Four heads, and two of keys.
  static constexpr const char *attention = R"(
    func.func @attend(%q: tensor<1x3x4x2xf32>, %k: tensor<1x3x2x2xf32>)
        -> tensor<1x3x4x2xf32> {
      %o, %sums = rota.attention %q, %k, %k scale = 0.5 :
          (tensor<1x3x4x2xf32>, tensor<1x3x2x2xf32>, tensor<1x3x2x2xf32>)
          -> (tensor<1x3x4x2xf32>, tensor<1x4x3xf32>)
      return %o : tensor<1x3x4x2xf32>
    })";

  mlir::rota::StateAttr stateOf(unsigned argument) {
    return function.getArgAttrOfType<mlir::rota::StateAttr>(argument,
                                                            "rota.state");
  }

  double valueOf(mlir::rota::ScalarAttr scalar, int t) const {
    double x = 0.0;
    if (scalar.getOption())
      x = options.at(scalar.getOption().str());
    switch (scalar.getKind()) {
    case ScalarKind::LearningRate:
      return kRate * scalar.getFactorOrOne();
    case ScalarKind::GradientScale:
      return kScale;
    case ScalarKind::Option:
      return x * scalar.getFactorOrOne();
    case ScalarKind::Complement:
      return 1.0 - x;
    case ScalarKind::Correction:
      return 1.0 - std::pow(x, t);
    case ScalarKind::Skip:
      return skip;
    }
    return NAN;
  }

  TestModule module;
  OptionValues options;
  mlir::func::FuncOp function;
  std::unique_ptr<KernelHarness> kernels;
};

Values gradientOf(int64_t size, int t) {
  Values result(size);
  for (int64_t i = 0; i < size; ++i)
    result[i] = float(std::sin(0.7 * double(i) + 0.3 * t) + 0.05 * t);
  return result;
}

void expectNear(const Values &got, const Values &expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], expected[i], tolerance) << i;
}

//===----------------------------------------------------------------------===//
// SGD
//===----------------------------------------------------------------------===//

void checkSGD(double momentum, bool isNesterov, bool isNative) {
  Update update("5x33",
                "optimizer=sgd values=momentum=" + std::to_string(momentum) +
                    (isNesterov ? " nesterov=true" : ""),
                {{"momentum", momentum}, {"weight-decay", kDecay}});
  if (isNative)
    update.useKernels();
  Values p = update.p, buffer(p.size(), 0.0);
  EXPECT_EQ(update.states.size(), momentum > 0.0 ? 1u : 0u);
  for (int t = 1; t <= kSteps; ++t) {
    Values gradient = gradientOf(p.size(), t);
    update.step(gradient, t);
    for (size_t i = 0; i < p.size(); ++i) {
      double g = kScale * gradient[i];
      buffer[i] = momentum * buffer[i] + g;
      double direction = isNesterov ? g + momentum * buffer[i] : buffer[i];
      p[i] = p[i] - kRate * direction - kRate * kDecay * p[i];
    }
    expectNear(update.p, p, isNative ? 1e-6 : 1e-12);
  }
}

TEST(SGD, WithoutMomentum) {
  checkSGD(0.0, false, false);
  checkSGD(0.0, false, true);
}
TEST(SGD, WithMomentum) {
  checkSGD(0.9, false, false);
  checkSGD(0.9, false, true);
}
TEST(SGD, Nesterov) {
  checkSGD(0.9, true, false);
  checkSGD(0.9, true, true);
}

//===----------------------------------------------------------------------===//
// AdamW
//===----------------------------------------------------------------------===//

const OptionValues adamOptions = {{"beta1", 0.9},
                                  {"beta2", 0.95},
                                  {"epsilon", 1e-8},
                                  {"weight-decay", kDecay},
                                  {"momentum", 0.95}};

/// A step of AdamW from these moments; leaves the new ones unrounded.
void adamStep(Values &p, Values &m, Values &v, const Values &gradient, int t,
              double decay) {
  for (size_t i = 0; i < p.size(); ++i) {
    double g = kScale * gradient[i];
    m[i] = 0.9 * m[i] + 0.1 * g;
    v[i] = 0.95 * v[i] + 0.05 * g * g;
    double step = m[i] / (1 - std::pow(0.9, t)) /
                  (std::sqrt(v[i] / (1 - std::pow(0.95, t))) + 1e-8);
    p[i] -= kRate * (step + decay * p[i]);
  }
}

/// The states that a step leaves are the formula's, rounded to the nearest
/// bf16; the step itself is of what was not rounded.
TEST(AdamW, StatesInBF16) {
  Update update("7x96", "optimizer=adamw state-dtype=bf16", adamOptions);
  update.useKernels();
  for (int t = 1; t <= kSteps; ++t) {
    Values p = update.p, m = update.states["first_moment"],
           v = update.states["second_moment"];
    Values gradient = gradientOf(p.size(), t);
    adamStep(p, m, v, gradient, t, kDecay);
    update.step(gradient, t);
    expectNear(update.p, p, 1e-6);
    auto check = [](const Values &stored, const Values &expected) {
      for (size_t i = 0; i < stored.size(); ++i) {
        ASSERT_EQ(stored[i], roundToBF16(stored[i]));
        double half = std::exp2(std::ilogb(expected[i]) -
                                8); // half a unit in the last place
        ASSERT_NEAR(stored[i], expected[i], half * (1 + 1e-4) + 1e-9) << i;
      }
    };
    check(update.states["first_moment"], m);
    check(update.states["second_moment"], v);
  }
}

/// A group's factors replace those of the dimensions.
TEST(AdamW, Groups) {
  Update update("40", "optimizer=adamw groups=.w=decay:0.5,lr:2;layers=decay:0",
                adamOptions);
  Values p = update.p, m(p.size(), 0.0), v = m;
  for (int t = 1; t <= kSteps; ++t) {
    Values gradient = gradientOf(p.size(), t), before = p;
    adamStep(p, m, v, gradient, t, 0.5 * kDecay);
    for (size_t i = 0; i < p.size(); ++i)
      p[i] = before[i] + 2.0 * (p[i] - before[i]);
    update.step(gradient, t);
    expectNear(update.p, p, 1e-12);
  }
}

//===----------------------------------------------------------------------===//
// Muon
//===----------------------------------------------------------------------===//

struct Matrix {
  int64_t rows, columns;
  Values values;
  double &operator()(int64_t i, int64_t j) { return values[i * columns + j]; }
  double operator()(int64_t i, int64_t j) const {
    return values[i * columns + j];
  }
};

Matrix transposed(const Matrix &a) {
  Matrix result{a.columns, a.rows, Values(a.values.size())};
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.columns; ++j)
      result(j, i) = a(i, j);
  return result;
}

Matrix product(const Matrix &a, const Matrix &b) {
  Matrix result{a.rows, b.columns, Values(a.rows * b.columns, 0.0)};
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t j = 0; j < b.columns; ++j)
        result(i, j) += a(i, k) * b(k, j);
  return result;
}

/// Five Newton-Schulz steps, the wide side last.
Matrix orthogonalized(Matrix x) {
  bool isTall = x.rows > x.columns;
  if (isTall)
    x = transposed(x);
  double sum = 0.0;
  for (double value : x.values)
    sum += value * value;
  for (double &value : x.values)
    value /= std::sqrt(sum) + 1e-7;
  for (int step = 0; step < 5; ++step) {
    Matrix a = product(x, transposed(x)), square = product(a, a), b = a;
    for (size_t i = 0; i < b.values.size(); ++i)
      b.values[i] = -4.7750 * a.values[i] + 2.0315 * square.values[i];
    Matrix moved = product(b, x);
    for (size_t i = 0; i < x.values.size(); ++i)
      x.values[i] = 3.4445 * x.values[i] + moved.values[i];
  }
  return isTall ? transposed(x) : x;
}

/// `count` matrices: a parameter [count, rows, columns], or with axes of
/// attention [count * rows, columns] or [rows, count * columns].
struct MuonCase {
  int64_t count, rows, columns;
  bool isNesterov = true;
  bool matchesAdamW = false;
  std::string rowAxis = "", columnAxis = "";

  bool areRows() const { return !rowAxis.empty(); }
  bool areColumns() const { return !columnAxis.empty(); }
  std::string shape() const {
    std::string matrix =
        std::to_string(areRows() ? count * rows : rows) + "x" +
        std::to_string(areColumns() ? count * columns : columns);
    bool isStacked = count > 1 && !areRows() && !areColumns();
    return isStacked ? std::to_string(count) + "x" + matrix : matrix;
  }
  std::string axes() const {
    if (!areRows() && !areColumns())
      return "";
    return "\"" + (areRows() ? rowAxis : "a") + "\", \"" +
           (areColumns() ? columnAxis : "a") + "\"";
  }
  /// The place of an element of matrix n in the parameter.
  size_t at(int64_t n, int64_t i, int64_t j) const {
    return areColumns() ? (i * count + n) * columns + j
                        : (n * rows + i) * columns + j;
  }
};

void checkMuon(const MuonCase &c) {
  bool areHeads = c.areRows() || c.areColumns();
  bool isStacked = c.count > 1 && !areHeads;
  Update update(c.shape(),
                std::string("optimizer=muon") +
                    (c.isNesterov ? " nesterov=true" : "") +
                    (c.matchesAdamW ? " muon-scale=match-rms-adamw" : "") +
                    (areHeads ? " muon-per-head=true" : ""),
                adamOptions, isStacked ? "experts.{expert}.up" : "w", c.axes());
  Values p = update.p, buffer(p.size(), 0.0);
  double rows = double(c.rows), columns = double(c.columns);
  double scale = c.matchesAdamW ? 0.2 * std::sqrt(std::max(rows, columns))
                                : std::sqrt(std::max(1.0, rows / columns));
  for (int t = 1; t <= kSteps; ++t) {
    Values gradient = gradientOf(p.size(), t);
    update.step(gradient, t);
    for (int64_t n = 0; n < c.count; ++n) {
      Matrix u{c.rows, c.columns, Values(c.rows * c.columns)};
      for (int64_t i = 0; i < c.rows; ++i)
        for (int64_t j = 0; j < c.columns; ++j) {
          size_t e = c.at(n, i, j);
          double g = kScale * gradient[e];
          buffer[e] = 0.95 * buffer[e] + 0.05 * g;
          u(i, j) = c.isNesterov ? 0.05 * g + 0.95 * buffer[e] : buffer[e];
        }
      Matrix o = orthogonalized(u);
      for (int64_t i = 0; i < c.rows; ++i)
        for (int64_t j = 0; j < c.columns; ++j) {
          double &value = p[c.at(n, i, j)];
          value = (1.0 - kRate * kDecay) * value - kRate * scale * o(i, j);
        }
    }
    expectNear(update.states["momentum"], buffer, 1e-12);
    // The function has its coefficients in f32.
    expectNear(update.p, p, 1e-7);
  }
}

TEST(Muon, Wide) { checkMuon({1, 3, 7}); }
TEST(Muon, Tall) { checkMuon({1, 7, 3}); }
TEST(Muon, Square) { checkMuon({1, 4, 4, /*isNesterov=*/false}); }
TEST(Muon, EachExpertsMatrix) { checkMuon({3, 4, 5}); }
TEST(Muon, TallExperts) { checkMuon({2, 5, 2}); }
TEST(Muon, StepsAsLargeAsAdamW) { checkMuon({1, 6, 4, true, true}); }

TEST(Muon, EachQueryHead) { checkMuon({4, 3, 7, true, false, "heads"}); }
TEST(Muon, TallHeads) { checkMuon({4, 7, 3, true, true, "heads"}); }
TEST(Muon, EachKeyHead) { checkMuon({2, 3, 5, false, false, "kv_heads"}); }
TEST(Muon, OutputByColumnsOfHeads) {
  checkMuon({4, 7, 3, true, false, "", "heads"});
}
TEST(Muon, WideHeadsOfColumns) {
  checkMuon({4, 3, 7, true, true, "", "heads"});
}

/// Vectors of layers are AdamW's.
TEST(Muon, LeavesVectorsToAdamW) {
  Update update("40", "optimizer=muon", adamOptions);
  Values p = update.p, m(p.size(), 0.0), v = m;
  for (int t = 1; t <= kSteps; ++t) {
    Values gradient = gradientOf(p.size(), t);
    adamStep(p, m, v, gradient, t, 0.0);
    update.step(gradient, t);
    expectNear(update.p, p, 1e-12);
  }
}

//===----------------------------------------------------------------------===//
// Skipped updates
//===----------------------------------------------------------------------===//

/// Parameter and states keep their bits, whatever is in the gradient.
TEST(SkippedUpdates, ChangeNothing) {
  for (const char *settings :
       {"optimizer=sgd values=momentum=0.9 nesterov=true state-dtype=bf16",
        "optimizer=adamw state-dtype=bf16", "optimizer=muon",
        "optimizer=muon nesterov=true state-dtype=bf16"}) {
    SCOPED_TRACE(settings);
    Update update("7x32", settings, adamOptions);
    if (std::string_view(settings).find("muon") == std::string_view::npos)
      update.useKernels(); // which have no products
    for (int t = 1; t <= 3; ++t)
      update.step(gradientOf(update.p.size(), t), t);
    Values p = update.p;
    auto states = update.states;
    Values gradient = gradientOf(p.size(), 4);
    gradient[3] = NAN;
    gradient[200] = INFINITY;
    update.skip = 1.0;
    update.step(gradient, 4);
    EXPECT_EQ(update.p, p);
    EXPECT_EQ(update.states, states);
  }
}

} // namespace
