// SPDX-License-Identifier: Apache-2.0
//
// Composite ops before and after `decompose` and `form-kernels` give the same
// values: to 1e-12 in f64, and to the rounding of constants in f32 and bf16.
#include "test/passes/equivalence/CompositeOps.h"
#include "test/passes/equivalence/Passes.h"
#include "test/passes/equivalence/TestModels.h"

#include "llvm/ADT/StringExtras.h"
#include <gtest/gtest.h>

using namespace rota::interpreter;

namespace {

constexpr const char *pipelines[] = {"decompose", "decompose,form-kernels",
                                     "decompose,canonicalize,cse,form-kernels",
                                     "decompose,canonicalize,cse"};

using Parameter = std::tuple<size_t, const char *, const char *>;
class Decompose : public testing::TestWithParam<Parameter> {};

TEST_P(Decompose, KeepsTheValues) {
  auto [index, type, pipeline] = GetParam();
  double tolerance = llvm::StringRef(type) == "f64" ? 1e-12 : 1e-6;
  for (auto [rows, columns] : {std::pair{1, 1}, {3, 7}, {6, 5}}) {
    TestModule module(
        compositeText(compositeOps()[index], rows, columns, type));
    ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
    auto arguments = compositeArguments(module.function("f"));
    auto before = runFunction(module.function("f"), arguments);
    ASSERT_TRUE(succeeded(before)) << module.takeDiagnostics();
    ASSERT_TRUE(succeeded(runPasses(module, pipeline)))
        << module.takeDiagnostics();
    module.get().walk([&](mlir::rota::DecomposableOpInterface op) {
      ADD_FAILURE() << "left: " << op->getName().getStringRef().str();
    });
    auto after = runFunction(module.function("f"), arguments);
    ASSERT_TRUE(succeeded(after)) << module.takeDiagnostics();
    ASSERT_EQ(after->size(), before->size());
    for (auto [a, b] : llvm::zip(*after, *before))
      EXPECT_LT(relativeError(a, b), tolerance) << rows << " x " << columns;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ops, Decompose,
    testing::Combine(testing::Range(size_t(0), compositeOps().size()),
                     testing::Values("f64", "f32", "bf16"),
                     testing::ValuesIn(pipelines)),
    [](const testing::TestParamInfo<Parameter> &info) {
      std::string name = compositeOps()[std::get<0>(info.param)].name;
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
