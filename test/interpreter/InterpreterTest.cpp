// SPDX-License-Identifier: Apache-2.0
//
// The interpreter against numbers worked out by hand, and its errors.
#include "test/interpreter/TestModule.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace rota::interpreter;

namespace {

std::vector<double> run(TestModule &module, llvm::ArrayRef<Tensor> arguments,
                        const Options &options = {}) {
  auto results = runFunction(module.function("f"), arguments, options);
  if (failed(results))
    return {};
  return results->front().elements;
}

TEST(Interpreter, EinsumSumsOverLettersThatTheResultLacks) {
  TestModule module(R"(
    func.func @f(%x: tensor<2x3xf32>, %w: tensor<2x3xf32>) -> tensor<2x2xf32> {
      %y = rota.einsum "mk,nk->mn" %x, %w : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
      return %y : tensor<2x2xf32>
    })");
  Tensor x({2, 3}, {1, 2, 3, 4, 5, 6}), w({2, 3}, {1, 0, -1, 2, 1, 0});
  EXPECT_EQ(run(module, {x, w}), (std::vector<double>{-2, 4, -2, 13}));
}

TEST(Interpreter, EinsumTransposesItsResult) {
  TestModule module(R"(
    func.func @f(%x: tensor<2x1xf32>, %w: tensor<3x1xf32>) -> tensor<3x2xf32> {
      %y = rota.einsum "mk,nk->nm" %x, %w : (tensor<2x1xf32>, tensor<3x1xf32>) -> tensor<3x2xf32>
      return %y : tensor<3x2xf32>
    })");
  Tensor x({2, 1}, {1, 10}), w({3, 1}, {1, 2, 3});
  EXPECT_EQ(run(module, {x, w}), (std::vector<double>{1, 10, 2, 20, 3, 30}));
}

TEST(Interpreter, ReduceTakesItsDimsAway) {
  TestModule module(R"(
    func.func @f(%x: tensor<2x2x2xf32>) -> tensor<2xf32> {
      %y = rota.reduce sum %x dims [0, 2] : tensor<2x2x2xf32> -> tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  Tensor x({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(run(module, {x}), (std::vector<double>{14, 22}));
}

TEST(Interpreter, MaximumOfNegativeNumbers) {
  TestModule module(R"(
    func.func @f(%x: tensor<2x2xf32>) -> tensor<2xf32> {
      %y = rota.reduce max %x dims [1] : tensor<2x2xf32> -> tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  EXPECT_EQ(run(module, {Tensor({2, 2}, {-1, -2, -4, -3})}),
            (std::vector<double>{-1, -3}));
}

TEST(Interpreter, BroadcastRepeatsAlongNewDims) {
  TestModule module(R"(
    func.func @f(%x: tensor<2xf32>) -> tensor<2x3xf32> {
      %y = rota.broadcast %x dims [0] : tensor<2xf32> -> tensor<2x3xf32>
      return %y : tensor<2x3xf32>
    })");
  EXPECT_EQ(run(module, {Tensor({2}, {1, 2})}),
            (std::vector<double>{1, 1, 1, 2, 2, 2}));
}

TEST(Interpreter, RMSNormOfThreeFour) {
  TestModule module(R"(
    func.func @f(%x: tensor<1x2xf32>, %gain: tensor<2xf32>) -> tensor<1x2xf32> {
      %y = rota.rms_norm %x, %gain epsilon = 0.0 : tensor<1x2xf32>, tensor<2xf32>
      return %y : tensor<1x2xf32>
    })");
  // mean(9, 16) = 12.5
  auto y = run(module, {Tensor({1, 2}, {3, 4}), Tensor({2}, {1, 2})});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_NEAR(y[0], 3 / std::sqrt(12.5), 1e-15);
  EXPECT_NEAR(y[1], 8 / std::sqrt(12.5), 1e-15);
}

TEST(Interpreter, AttentionIsCausalAndGroupsHeads) {
  TestModule module(R"(
    func.func @f(%q: tensor<1x2x2x1xf32>, %k: tensor<1x2x1x1xf32>, %v: tensor<1x2x1x1xf32>) -> tensor<1x2x2x1xf32> {
      %o, %lse = rota.attention %q, %k, %v scale = 0.5 : (tensor<1x2x2x1xf32>, tensor<1x2x1x1xf32>, tensor<1x2x1x1xf32>) -> (tensor<1x2x2x1xf32>, tensor<1x2x2xf32>)
      return %o : tensor<1x2x2x1xf32>
    })");
  Tensor q({1, 2, 2, 1}, {5, 6, 0, 2}), k({1, 2, 1, 1}, {0, 2});
  auto o = run(module, {q, k, Tensor({1, 2, 1, 1}, {10, 20})});
  ASSERT_EQ(o.size(), 4u);
  // Position 0 sees itself alone. Position 1: scores (0, 0) and (0, 2).
  EXPECT_NEAR(o[0], 10, 1e-14);
  EXPECT_NEAR(o[1], 10, 1e-14);
  EXPECT_NEAR(o[2], 15, 1e-14);
  EXPECT_NEAR(o[3], (10 + 20 * std::exp(2)) / (1 + std::exp(2)), 1e-13);
}

/// The outputs of a function with four positions, one head of one element,
/// queries and keys of 0 but for the last key, 3, and values 1, 10, 100 and
/// 1000.
static std::vector<double> attendWith(llvm::StringRef form) {
  TestModule module(("func.func @f(%q: tensor<1x4x1x1xf32>, %k: "
                     "tensor<1x4x1x1xf32>, %v: tensor<1x4x1x1xf32>, %s: "
                     "tensor<1xf32>) -> tensor<1x4x1x1xf32> {\n"
                     "  %o, %lse = rota.attention %q, %k, %v sinks %s scale = "
                     "0.5 " +
                     form +
                     " : (tensor<1x4x1x1xf32>, tensor<1x4x1x1xf32>, "
                     "tensor<1x4x1x1xf32>, tensor<1xf32>) -> "
                     "(tensor<1x4x1x1xf32>, tensor<1x1x4xf32>)\n"
                     "  return %o : tensor<1x4x1x1xf32>\n}")
                        .str());
  Tensor q({1, 4, 1, 1}, {0, 0, 0, 2}), k({1, 4, 1, 1}, {0, 0, 0, 3});
  // A sink of weight 2 beside weights of 1.
  return run(module, {q, k, Tensor({1, 4, 1, 1}, {1, 10, 100, 1000}),
                      Tensor({1}, {std::log(2.0)})});
}

TEST(Interpreter, AttentionHasWindowsSinksAndACap) {
  auto o = attendWith("window = 2");
  ASSERT_EQ(o.size(), 4u);
  EXPECT_NEAR(o[0], 1.0 / 3, 1e-13);
  EXPECT_NEAR(o[1], 11.0 / 4, 1e-13);
  EXPECT_NEAR(o[2], 110.0 / 4, 1e-13);
  double e = std::exp(3.0);
  EXPECT_NEAR(o[3], (100 + 1000 * e) / (3 + e), 1e-12);
  o = attendWith("window = 2 bidirectional");
  EXPECT_NEAR(o[0], 11.0 / 4, 1e-13);
  EXPECT_NEAR(o[1], 111.0 / 5, 1e-13);
  EXPECT_NEAR(o[2], 1110.0 / 5, 1e-13);
  e = std::exp(1.5 * std::tanh(3.0 / 1.5));
  o = attendWith("soft_cap = 1.5 bidirectional");
  EXPECT_NEAR(o[0], 1111.0 / 6, 1e-12);
  EXPECT_NEAR(o[3], (111 + 1000 * e) / (5 + e), 1e-12);
}

TEST(Interpreter, CrossEntropySkipsNegativeTargets) {
  TestModule module(R"(
    func.func @f(%x: tensor<1x3x2xf32>, %t: tensor<1x3xi32>) -> tensor<2xf32> {
      %sum, %weight, %lse = rota.cross_entropy %x, %t : (tensor<1x3x2xf32>, tensor<1x3xi32>) -> (tensor<f32>, tensor<f32>, tensor<1x3xf32>)
      %a = rota.broadcast %sum dims [] : tensor<f32> -> tensor<2xf32>
      %b = rota.broadcast %weight dims [] : tensor<f32> -> tensor<2xf32>
      %c = arith.constant dense<[true, false]> : tensor<2xi1>
      %y = arith.select %c, %a, %b : tensor<2xi1>, tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  Tensor x({1, 3, 2}, {0, 0, 1, 3, 9, 7}), t({1, 3}, {1, 0, -1});
  auto y = run(module, {x, t});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_NEAR(y[0], std::log(2) + std::log(1 + std::exp(2)), 1e-14);
  EXPECT_EQ(y[1], 2);
}

TEST(Interpreter, RopeTurnsHalvesAndBack) {
  TestModule module(R"(
    func.func @f(%x: tensor<1x2x1x2xf32>) -> tensor<1x2x1x2xf32> {
      %t = rota.rotary_table frequencies [0.5] scale = 1.0 : tensor<2x1x2xf32>
      %y = rota.rope %x, %t : tensor<1x2x1x2xf32>, tensor<2x1x2xf32>
      return %y : tensor<1x2x1x2xf32>
    })");
  auto y = run(module, {Tensor({1, 2, 1, 2}, {1, 2, 1, 2})});
  ASSERT_EQ(y.size(), 4u);
  EXPECT_EQ(y[0], 1);
  EXPECT_EQ(y[1], 2);
  EXPECT_NEAR(y[2], std::cos(0.5) - 2 * std::sin(0.5), 1e-15);
  EXPECT_NEAR(y[3], 2 * std::cos(0.5) + std::sin(0.5), 1e-15);
}

TEST(Interpreter, LaunchRunsRowsAndSums) {
  TestModule module(R"(
    rota.kernel @k operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>] results [#rota.result<row>, #rota.result<sum>] {
    ^bb0(%x: tensor<2xf32>, %gain: tensor<2xf32>):
      %y = arith.mulf %x, %gain : tensor<2xf32>
      %s = rota.reduce sum %y dims [0] : tensor<2xf32> -> tensor<f32>
      rota.yield %s, %y : tensor<f32>, tensor<2xf32>
    }
    func.func @f(%x: tensor<3x2xf32>, %gain: tensor<2xf32>) -> (tensor<3xf32>, tensor<2xf32>) {
      %y:2 = rota.launch @k rows = 3 (%x, %gain) : (tensor<3x2xf32>, tensor<2xf32>) -> (tensor<3xf32>, tensor<2xf32>)
      return %y#0, %y#1 : tensor<3xf32>, tensor<2xf32>
    })");
  Tensor x({3, 2}, {1, 2, 3, 4, 5, 6});
  auto results = runFunction(module.function("f"), {x, Tensor({2}, {1, 10})});
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ((*results)[0].elements, (std::vector<double>{21, 43, 65}));
  EXPECT_EQ((*results)[1].elements, (std::vector<double>{9, 120}));
}

TEST(Interpreter, ParametersComeFromTheEnvironment) {
  TestModule module(R"(
    rota.param @w : tensor<2xf32> axes ["a"] init #rota.constant<value = 1.0>
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %w = rota.read @w : tensor<2xf32>
      %y = arith.mulf %x, %w : tensor<2xf32>
      rota.accumulate @w, %x : tensor<2xf32>
      rota.accumulate @w, %x : tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  Tensor w({2}, {3, 4}), gradient({2}, {100, 200});
  Environment environment{{{"w", &w}}, {{"w", &gradient}}};
  auto y =
      runFunction(module.function("f"), {Tensor({2}, {1, 2})}, environment);
  ASSERT_TRUE(succeeded(y));
  EXPECT_EQ(y->front().elements, (std::vector<double>{3, 8}));
  EXPECT_EQ(gradient.elements, (std::vector<double>{102, 204}));
}

TEST(Interpreter, RoundsBF16OnRequest) {
  TestModule module(R"(
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %y = arith.truncf %x : tensor<4xf32> to tensor<4xbf16>
      %z = arith.extf %y : tensor<4xbf16> to tensor<4xf32>
      return %z : tensor<4xf32>
    })");
  // bf16 has 8 significant bits: 257 is between 256 and 258, ties go to even.
  Tensor x({4}, {257, 259, -257.5, 1e30});
  EXPECT_EQ(run(module, {x}), x.elements);
  auto rounded = run(module, {x}, Options{/*roundBF16=*/true});
  ASSERT_EQ(rounded.size(), 4u);
  EXPECT_EQ(rounded[0], 256);
  EXPECT_EQ(rounded[1], 260);
  EXPECT_EQ(rounded[2], -258);
  EXPECT_NEAR(rounded[3] / 1e30, 1, 0x1p-8);
}

TEST(Interpreter, NamesAnOpThatItDoesNotKnow) {
  TestModule module(R"(
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      %y = math.cbrt %x : tensor<2xf32>
      return %y : tensor<2xf32>
    })");
  EXPECT_TRUE(run(module, {Tensor({2})}).empty());
  EXPECT_EQ(module.takeDiagnostics(),
            "'math.cbrt' op is not known to the interpreter");
}

TEST(Interpreter, RefusesTokensOutsideTheTable) {
  TestModule module(R"(
    func.func @f(%t: tensor<1x2xi32>, %w: tensor<3x1xf32>) -> tensor<1x2x1xf32> {
      %y = rota.embedding %t, %w : (tensor<1x2xi32>, tensor<3x1xf32>) -> tensor<1x2x1xf32>
      return %y : tensor<1x2x1xf32>
    })");
  EXPECT_TRUE(run(module, {Tensor({1, 2}, {0, 3}), Tensor({3, 1})}).empty());
  EXPECT_EQ(module.takeDiagnostics(),
            "'rota.embedding' op expected tokens from 0 to 2, got 3");
}

TEST(Interpreter, RefusesArgumentsOfAnotherShape) {
  TestModule module(R"(
    func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
      return %x : tensor<2xf32>
    })");
  EXPECT_TRUE(run(module, {Tensor({3})}).empty());
  EXPECT_EQ(module.takeDiagnostics(),
            "'func.func' op expected argument 0 of type 'tensor<2xf32>', got a "
            "tensor of shape [3]");
}

} // namespace
