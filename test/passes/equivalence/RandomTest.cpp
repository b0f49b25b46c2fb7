// SPDX-License-Identifier: Apache-2.0
//
// Passes keep the meaning of random functions and models: values that live
// long, are used often, and meet in shapes that no model of ours has.
#include "test/passes/equivalence/Passes.h"
#include "test/passes/equivalence/RandomFunction.h"
#include "test/passes/equivalence/TestModels.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using mlir::rota::Model;

namespace {

/// Fused in the order of the text and after simplification.
constexpr const char *fusions[] = {"form-kernels",
                                   "canonicalize,cse,form-kernels",
                                   "form-kernels,canonicalize,cse"};

TEST(RandomFunctions, KeepTheirValuesWhenFused) {
  const std::pair<int64_t, int64_t> sizes[] = {{3, 4}, {1, 5}, {6, 1}, {4, 4}};
  unsigned launches = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    auto [rows, columns] = sizes[seed % std::size(sizes)];
    std::string text =
        randomFunction(seed, 4 + seed % 30, rows, columns, "f64");
    for (const char *pipeline : fusions) {
      TestModule module(text);
      ASSERT_TRUE(bool(module)) << module.takeDiagnostics() << text;
      Random random(seed + 1);
      llvm::SmallVector<Tensor> arguments;
      for (mlir::Type type : module.function("f").getArgumentTypes())
        arguments.push_back(random.uniform(
            llvm::cast<mlir::RankedTensorType>(type).getShape(), -1, 1));
      auto before = runFunction(module.function("f"), arguments);
      ASSERT_TRUE(succeeded(before)) << module.takeDiagnostics() << text;
      ASSERT_TRUE(succeeded(runPasses(module, pipeline)))
          << pipeline << module.takeDiagnostics() << text;
      module.get().walk([&](mlir::rota::LaunchOp) { ++launches; });
      auto after = runFunction(module.function("f"), arguments);
      ASSERT_TRUE(succeeded(after)) << module.takeDiagnostics() << text;
      for (auto [a, b] : llvm::zip_equal(*after, *before))
        EXPECT_LT(relativeError(a, b), 1e-12) << pipeline << "\n" << text;
    }
  }
  EXPECT_GT(launches, 180u) << "kernels were formed at all";
}

llvm::FailureOr<Step> runModel(llvm::StringRef text, llvm::StringRef pipeline) {
  TestModule module(text);
  EXPECT_TRUE(bool(module)) << module.takeDiagnostics();
  if (!module)
    return llvm::failure();
  auto built = Model::get(module.get());
  EXPECT_TRUE(succeeded(runPasses(module, pipeline)))
      << pipeline.str() << ": " << module.takeDiagnostics();
  auto model = Model::get(module.get());
  if (failed(built) || failed(model))
    return llvm::failure();
  auto step = differentiate(*model, randomParameters(*model, 3),
                            randomMicrobatches(*model, 0, 2, 4));
  EXPECT_TRUE(succeeded(step)) << module.takeDiagnostics();
  return step;
}

llvm::FailureOr<Step> runByDifferences(llvm::StringRef text) {
  TestModule module(text);
  auto model = Model::get(module.get());
  if (failed(model))
    return llvm::failure();
  Tensors parameters = randomParameters(*model, 3);
  auto microbatches = randomMicrobatches(*model, 0, 2, 4);
  auto step = evaluate(*model, parameters, microbatches);
  for (auto &[name, parameter] : parameters)
    step->gradients[name] =
        finiteDifferences(parameter, [&]() -> llvm::FailureOr<double> {
          auto step = evaluate(*model, parameters, microbatches);
          if (failed(step))
            return llvm::failure();
          return step->loss();
        });
  return step;
}

TEST(RandomModels, HaveTheirGradientsUnderEveryPolicy) {
  for (uint64_t seed = 0; seed < 25; ++seed) {
    std::string text = randomModel(seed, 3 + seed, "f64");
    SCOPED_TRACE(text);
    auto expected = runByDifferences(text);
    auto plain = runModel(text, "differentiate");
    ASSERT_TRUE(succeeded(expected) && succeeded(plain));
    EXPECT_LT(stepError(*plain, *expected), 1e-6);
    for (const char *policy : {"none", "full", "minimal"})
      for (const char *split : {"false", "true"}) {
        std::string pipeline = std::string("differentiate{remat=") + policy +
                               " split=" + split + "}";
        auto step = runModel(text, pipeline);
        ASSERT_TRUE(succeeded(step));
        EXPECT_TRUE(isSameStep(*step, *plain)) << pipeline;
        auto fused = runModel(
            text, pipeline + ",erase-names,canonicalize,cse,form-kernels");
        ASSERT_TRUE(succeeded(fused));
        EXPECT_LT(stepError(*fused, *plain), 1e-12) << pipeline;
      }
  }
}

} // namespace
