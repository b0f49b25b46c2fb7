// SPDX-License-Identifier: Apache-2.0
//
// `differentiate` on whole models: its gradients are those of finite
// differences of the model as built, and the same bits under every remat policy
// and with the backward split.
#include "test/interpreter/GradientCheck.h"
#include "test/passes/equivalence/Passes.h"
#include "test/passes/equivalence/TestModels.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using mlir::rota::Model;

namespace {

struct Problem {
  Tensors parameters;
  llvm::SmallVector<Microbatch> microbatches;
};

Problem makeProblem(const Model &model, const TestModel &test) {
  return {randomParameters(model, 1),
          randomMicrobatches(model, test.vocabulary, 2, 2)};
}

/// Loss and gradients after `pipeline`; a failed step after a test failure.
llvm::FailureOr<Step> stepAfter(const TestModel &test, llvm::StringRef type,
                                llvm::StringRef pipeline,
                                const Options &options = {}) {
  TestModule module(withElements(test.text, type));
  EXPECT_TRUE(bool(module)) << module.takeDiagnostics();
  if (!module)
    return llvm::failure();
  auto before = Model::get(module.get());
  if (failed(before))
    return llvm::failure();
  Problem problem = makeProblem(*before, test);
  EXPECT_TRUE(succeeded(runPasses(module, pipeline)))
      << module.takeDiagnostics();
  auto model = Model::get(module.get());
  if (failed(model))
    return llvm::failure();
  auto step =
      differentiate(*model, problem.parameters, problem.microbatches, options);
  EXPECT_TRUE(succeeded(step)) << module.takeDiagnostics();
  return step;
}

/// Loss by evaluation, gradients by finite differences, of the model as built.
llvm::FailureOr<Step> stepByDifferences(const TestModel &test,
                                        llvm::StringRef type) {
  TestModule module(withElements(test.text, type));
  EXPECT_TRUE(bool(module)) << module.takeDiagnostics();
  if (!module)
    return llvm::failure();
  auto model = Model::get(module.get());
  if (failed(model))
    return llvm::failure();
  Problem problem = makeProblem(*model, test);
  auto loss = [&]() -> llvm::FailureOr<double> {
    auto step = evaluate(*model, problem.parameters, problem.microbatches);
    if (failed(step))
      return llvm::failure();
    return step->loss();
  };
  auto step = evaluate(*model, problem.parameters, problem.microbatches);
  if (succeeded(step))
    for (auto &[name, parameter] : problem.parameters)
      step->gradients[name] = finiteDifferences(parameter, loss);
  return step;
}

/// Checks that every remat policy, split or not, simplified or not, gives the
/// bits of the plain one.
void expectSameBits(const TestModel &test, llvm::StringRef type,
                    const Options &options) {
  auto expected = stepAfter(test, type, "differentiate{remat=none}", options);
  ASSERT_TRUE(succeeded(expected));
  for (const char *policy :
       {"none", "full", "minimal", "minimal_with_context", "minimal_offloaded",
        "qkv_proj_offloaded", "save_dot_with_context_except_mlp",
        "save_dot_except_mlpwi", "save_dot_except_mlp", "save_qkv_proj",
        "save_out_proj", "none,decoder_layer_input=offload", test.policy})
    for (const char *split : {"false", "true"})
      for (const char *tail : {"", ",erase-names,canonicalize,cse"}) {
        std::string pipeline = std::string("differentiate{remat=") + policy +
                               " split=" + split + "}" + tail;
        auto step = stepAfter(test, type, pipeline, options);
        ASSERT_TRUE(succeeded(step)) << pipeline;
        EXPECT_TRUE(isSameStep(*step, *expected)) << pipeline;
      }
}

class Differentiate
    : public testing::TestWithParam<std::tuple<size_t, const char *>> {};

TEST_P(Differentiate, EqualsFiniteDifferences) {
  auto [index, type] = GetParam();
  const TestModel &test = testModels()[index];
  auto expected = stepByDifferences(test, type);
  auto step = stepAfter(test, type, "differentiate{remat=none}");
  ASSERT_TRUE(succeeded(expected) && succeeded(step));
  EXPECT_LT(stepError(*step, *expected), 1e-6);
}

TEST_P(Differentiate, GivesTheSameBitsUnderEveryPolicy) {
  auto [index, type] = GetParam();
  expectSameBits(testModels()[index], type, {});
}

/// Stages and chunks with policies of their own, as passes before and behind
/// each other.
TEST_P(Differentiate, GivesTheSameBitsWithAPolicyPerStageOrChunk) {
  auto [index, type] = GetParam();
  const TestModel &test = testModels()[index];
  auto expected = stepAfter(test, type, "differentiate{remat=none}");
  ASSERT_TRUE(succeeded(expected));
  for (const char *assigned :
       {"schedule-layers{stages=2 microbatches=2},"
        "assign-remat{remat=full;1:minimal_offloaded}",
        "schedule-layers{stages=1 repeats=2 microbatches=2},"
        "assign-remat{remat=full;chunk1:minimal_offloaded}"}) {
    auto step = stepAfter(test, type,
                          std::string(assigned) +
                              ",differentiate{remat=save_out_proj}");
    ASSERT_TRUE(succeeded(step)) << assigned;
    EXPECT_TRUE(isSameStep(*step, *expected)) << assigned;
  }
}

TEST(DifferentiateBF16, GivesTheSameRoundedBitsUnderEveryPolicy) {
  for (const TestModel &test : testModels())
    expectSameBits(test, "bf16", Options{/*roundBF16=*/true});
}

/// A gradient that is lost or doubled must be seen.
TEST(DifferentiateChecker, SeesAnAccumulationThatIsLostOrDoubled) {
  const TestModel &test = testModels()[1];
  auto expected = stepByDifferences(test, "f64");
  ASSERT_TRUE(succeeded(expected));
  for (bool isLost : {true, false}) {
    TestModule module(withElements(test.text, "f64"));
    ASSERT_TRUE(succeeded(runPasses(module, "differentiate")));
    auto model = Model::get(module.get());
    ASSERT_TRUE(succeeded(model));
    auto backward =
        Model::function(model->kinds()[0], mlir::rota::FunctionKind::Backward);
    mlir::rota::AccumulateOp victim;
    backward.walk([&](mlir::rota::AccumulateOp op) { victim = op; });
    if (isLost)
      victim.erase();
    else
      mlir::OpBuilder(victim).clone(*victim);
    Problem problem = makeProblem(*model, test);
    auto step = differentiate(*model, problem.parameters, problem.microbatches);
    ASSERT_TRUE(succeeded(step));
    EXPECT_GT(stepError(*step, *expected), 0.1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, Differentiate,
    testing::Combine(testing::Range(size_t(0), testModels().size()),
                     testing::Values("f64", "f32", "bf16")),
    [](const auto &info) {
      return std::string(testModels()[std::get<0>(info.param)].name) + "_" +
             std::get<1>(info.param);
    });

} // namespace
