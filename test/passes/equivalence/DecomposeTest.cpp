// SPDX-License-Identifier: Apache-2.0
//
// Composite ops before and after `decompose` and `form-kernels` give the same
// values: to 1e-12 in f64, and to the rounding of constants in f32 and bf16.
#include "test/interpreter/GradientCheck.h"
#include "test/passes/equivalence/Passes.h"
#include "test/passes/equivalence/TestModels.h"

#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace rota::interpreter;

namespace {

/// A function `f` with `$T` for the element type of operands and `$W` for what
/// is never bf16.
struct Case {
  const char *name, *text;
};

constexpr Case cases[] = {{"rms_norm", R"(
      func.func @f(%x: tensor<3x7x$T>, %gain: tensor<7x$T>) -> tensor<3x7x$T> {
        %y = rota.rms_norm %x, %gain epsilon = 0.015625 : tensor<3x7x$T>, tensor<7x$T>
        return %y : tensor<3x7x$T>
      })"},
                          {"rms_norm_of_one_row", R"(
      func.func @f(%x: tensor<5x$T>, %gain: tensor<5x$T>) -> tensor<5x$T> {
        %y = rota.rms_norm %x, %gain epsilon = 0.015625 : tensor<5x$T>, tensor<5x$T>
        return %y : tensor<5x$T>
      })"},
                          {"rms_norm_grad", R"(
      func.func @f(%dy: tensor<2x3x5x$T>, %x: tensor<2x3x5x$T>, %gain: tensor<5x$T>) -> (tensor<2x3x5x$T>, tensor<5x$W>) {
        %dx, %dgain = rota.rms_norm_grad %dy, %x, %gain epsilon = 0.015625 : (tensor<2x3x5x$T>, tensor<2x3x5x$T>, tensor<5x$T>) -> (tensor<2x3x5x$T>, tensor<5x$W>)
        return %dx, %dgain : tensor<2x3x5x$T>, tensor<5x$W>
      })"},
                          {"swiglu", R"(
      func.func @f(%gate: tensor<2x9x$T>, %up: tensor<2x9x$T>) -> tensor<2x9x$T> {
        %y = rota.swiglu %gate, %up : tensor<2x9x$T>
        return %y : tensor<2x9x$T>
      })"},
                          {"swiglu_grad", R"(
      func.func @f(%dy: tensor<2x9x$T>, %gate: tensor<2x9x$T>, %up: tensor<2x9x$T>) -> (tensor<2x9x$T>, tensor<2x9x$T>) {
        %dgate, %dup = rota.swiglu_grad %dy, %gate, %up : tensor<2x9x$T>
        return %dgate, %dup : tensor<2x9x$T>, tensor<2x9x$T>
      })"},
                          {"norm_of_a_sum", R"(
      func.func @f(%x: tensor<2x3x5x$T>, %h: tensor<2x3x5x$T>, %gain: tensor<5x$T>) -> (tensor<2x3x5x$T>, tensor<2x3x5x$T>) {
        %r = arith.addf %x, %h : tensor<2x3x5x$T>
        %y = rota.rms_norm %r, %gain epsilon = 0.015625 : tensor<2x3x5x$T>, tensor<5x$T>
        return %r, %y : tensor<2x3x5x$T>, tensor<2x3x5x$T>
      })"},
                          {"adamw", R"(
      func.func @f(%p: tensor<3x5x$W>, %g: tensor<3x5x$W>, %m: tensor<3x5x$W>, %v: tensor<3x5x$W>, %lr: tensor<$W>, %b1: tensor<$W>, %b2: tensor<$W>, %eps: tensor<$W>, %wd: tensor<$W>, %c1: tensor<$W>, %c2: tensor<$W>, %s: tensor<$W>) -> (tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$T>) {
        %q:5 = rota.adamw %p, %g, %m, %v, %lr, %b1, %b2, %eps, %wd, %c1, %c2, %s : (tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$W>, tensor<$W>, tensor<$W>, tensor<$W>, tensor<$W>, tensor<$W>, tensor<$W>, tensor<$W>, tensor<$W>) -> (tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$T>)
        return %q#0, %q#1, %q#2, %q#3, %q#4 : tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$W>, tensor<3x5x$T>
      })"}};

constexpr const char *pipelines[] = {"decompose", "decompose,canonicalize,cse"};

using Parameter = std::tuple<size_t, const char *, const char *>;
class Decompose : public testing::TestWithParam<Parameter> {};

TEST_P(Decompose, KeepsTheValues) {
  auto [index, type, pipeline] = GetParam();
  TestModule module(withElements(cases[index].text, type));
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  Random random(17);
  llvm::SmallVector<Tensor> arguments;
  // Positive, so that they may be second moments and learning rates too.
  for (mlir::Type argument : module.function("f").getArgumentTypes())
    arguments.push_back(random.uniform(
        llvm::cast<mlir::RankedTensorType>(argument).getShape(), 0.1, 0.9));
  auto before = runFunction(module.function("f"), arguments);
  ASSERT_TRUE(succeeded(before)) << module.takeDiagnostics();
  ASSERT_TRUE(succeeded(runPasses(module, pipeline)))
      << module.takeDiagnostics();
  module.get().walk([&](mlir::rota::DecomposableOpInterface op) {
    ADD_FAILURE() << "left: " << op->getName().getStringRef().str();
  });
  auto after = runFunction(module.function("f"), arguments);
  ASSERT_TRUE(succeeded(after)) << module.takeDiagnostics();
  double tolerance = llvm::StringRef(type) == "f64" ? 1e-12 : 1e-6;
  ASSERT_EQ(after->size(), before->size());
  for (auto [a, b] : llvm::zip(*after, *before))
    EXPECT_LT(relativeError(a, b), tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Decompose,
    testing::Combine(testing::Range(size_t(0), std::size(cases)),
                     testing::Values("f64", "f32", "bf16"),
                     testing::ValuesIn(pipelines)),
    [](const testing::TestParamInfo<Parameter> &info) {
      std::string name = cases[std::get<0>(info.param)].name;
      name += std::string("_") + std::get<1>(info.param) + "_";
      for (char c : std::string_view(std::get<2>(info.param)))
        name += llvm::isAlnum(c) ? c : '_';
      return name;
    });

/// Whole models: loss and gradients.
TEST(DecomposeModels, KeepLossAndGradients) {
  for (const TestModel &test : testModels())
    for (const char *pipeline : pipelines) {
      TestModule module(withElements(test.text, "f64"));
      ASSERT_TRUE(succeeded(
          runPasses(module, "differentiate{remat=minimal},erase-names")))
          << module.takeDiagnostics();
      auto model = mlir::rota::Model::get(module.get());
      ASSERT_TRUE(succeeded(model));
      Tensors parameters = randomParameters(*model, 5);
      auto microbatches = randomMicrobatches(*model, test.vocabulary, 2, 6);
      auto before = differentiate(*model, parameters, microbatches);
      ASSERT_TRUE(succeeded(before)) << module.takeDiagnostics();
      ASSERT_TRUE(succeeded(runPasses(module, pipeline)))
          << module.takeDiagnostics();
      auto after = differentiate(*model, parameters, microbatches);
      ASSERT_TRUE(succeeded(after)) << module.takeDiagnostics();
      EXPECT_LT(stepError(*after, *before), 1e-12) << test.name << pipeline;
    }
}

} // namespace
