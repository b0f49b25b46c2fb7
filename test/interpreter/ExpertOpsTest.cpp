// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts, out of its ops, gives what each token's experts give it
// one by one; routing by hand values; places, blocks and drops.
#include "test/interpreter/GradientCheck.h"
#include "test/interpreter/TestModule.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace rota::interpreter;

namespace {

llvm::SmallVector<Tensor> run(TestModule &module,
                              llvm::ArrayRef<Tensor> arguments) {
  EXPECT_TRUE(bool(module)) << module.takeDiagnostics();
  auto results = runFunction(module.function("f"), arguments);
  EXPECT_TRUE(succeeded(results)) << module.takeDiagnostics();
  return succeeded(results) ? *results : llvm::SmallVector<Tensor>();
}

std::string routeText(llvm::StringRef form, int64_t experts, int64_t k) {
  std::string logits = "tensor<1x1x" + std::to_string(experts) + "xf64>",
              bias = "tensor<" + std::to_string(experts) + "xf64>",
              choices = "tensor<1x1x" + std::to_string(k);
  return "func.func @f(%z: " + logits + ", %b: " + bias + ") -> (" + choices +
         "xf64>, " + choices + "xi32>) {\n %w, %e = rota.route %z bias %b " +
         form.str() + " : (" + logits + ", " + bias + ") -> (" + choices +
         "xf64>, " + choices + "xi32>)\n return %w, %e : " + choices +
         "xf64>, " + choices + "xi32>\n}\n";
}

struct RouteCase {
  std::string name, form;
  std::vector<double> logits, bias;
  std::vector<double> weights, experts;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

class Route : public testing::TestWithParam<RouteCase> {};

TEST_P(Route, GivesHandValues) {
  const RouteCase &test = GetParam();
  int64_t experts = test.logits.size(), k = test.experts.size();
  TestModule module(routeText(test.form, experts, k));
  auto results = run(module, {Tensor({1, 1, experts}, test.logits),
                              Tensor({experts}, test.bias)});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].elements, test.experts);
  EXPECT_LT(relativeError(results[0], Tensor({1, 1, k}, test.weights)), 1e-12);
}

const double kLog2 = std::log(2.0), kLog3 = std::log(3.0);

INSTANTIATE_TEST_SUITE_P(
    Forms, Route,
    testing::Values(
        // exp of the logits is 1, 3, 2, 2: a sum of 8.
        RouteCase{"softmax",
                  "scaling = 1.0",
                  {0, kLog3, kLog2, kLog2},
                  {0, 0, 0, 0},
                  {3. / 8, 2. / 8},
                  {1, 2}},
        RouteCase{"normalized",
                  "normalize scaling = 2.0",
                  {0, kLog3, kLog2, kLog2},
                  {0, 0, 0, 0},
                  {6. / 7, 4. / 7, 4. / 7},
                  {1, 2, 3}},
        // The bias chooses and does not weigh.
        RouteCase{"bias",
                  "scaling = 1.0",
                  {0, kLog3, kLog2, kLog2},
                  {1, 0, 0, 0.01},
                  {1. / 8, 3. / 8},
                  {0, 1}},
        RouteCase{"sigmoid",
                  "sigmoid normalize scaling = 2.5",
                  {1, -1, 2},
                  {0, 0, 0},
                  {2.5 * sigmoid(2) / (sigmoid(2) + sigmoid(1)),
                   2.5 * sigmoid(1) / (sigmoid(2) + sigmoid(1))},
                  {2, 0}},
        // The best expert is in the group with the smaller sum of two.
        RouteCase{"groups_of_sigmoid",
                  "sigmoid groups = 2 top_groups = 1 scaling = 1.0",
                  {3, -9, -9, 2, 1, 0},
                  {0, 0, 0, 0, 0, 0},
                  {sigmoid(2), sigmoid(1)},
                  {3, 4}},
        RouteCase{"groups_of_softmax",
                  "normalize groups = 2 top_groups = 1 scaling = 1.0",
                  {kLog3, 0, -9, kLog2, kLog2, kLog2},
                  {0, 0, 0, 0, 0, 0},
                  {0.75, 0.25},
                  {0, 1}},
        RouteCase{"ties",
                  "normalize scaling = 1.0",
                  {1, 1, 1, 1},
                  {0, 0, 0, 0},
                  {0.25, 0.25, 0.25, 0.25},
                  {0, 1, 2, 3}}),
    [](const auto &info) { return info.param.name; });

struct PlacesCase {
  std::string name, form;
  int64_t tokens, k, count; // tokens of one sequence; experts
  std::vector<double> experts, places, counts;
  int64_t parts = 1;
};

class Places : public testing::TestWithParam<PlacesCase> {};

TEST_P(Places, AreSortedByExpert) {
  const PlacesCase &test = GetParam();
  int64_t batch = test.experts.size() / (test.tokens * test.k);
  std::string choices = "tensor<" + std::to_string(batch) + "x" +
                        std::to_string(test.tokens) + "x" +
                        std::to_string(test.k) + "xi32>",
              counts = "tensor<" + std::to_string(batch * test.parts) + "x" +
                       std::to_string(test.count) + "xi32>";
  TestModule module("func.func @f(%e: " + choices + ") -> (" + choices + ", " +
                    counts + ") {\n %p, %c = rota.expert_places %e " +
                    test.form + " : " + choices + " -> " + counts +
                    "\n return %p, %c : " + choices + ", " + counts + "\n}\n");
  auto results =
      run(module, {Tensor({batch, test.tokens, test.k}, test.experts)});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].elements, test.places);
  EXPECT_EQ(results[1].elements, test.counts);
}

INSTANTIATE_TEST_SUITE_P(
    Forms, Places,
    testing::Values(
        PlacesCase{"two_sequences",
                   "rows = 6",
                   3,
                   2,
                   3,
                   {2, 0, 0, 2, 0, 1, /**/ 1, 2, 1, 2, 2, 1},
                   {4, 0, 1, 5, 2, 3, /**/ 0, 3, 1, 4, 5, 2},
                   {3, 1, 2, /**/ 0, 3, 3}},
        PlacesCase{"blocks",
                   "rows = 12 blocks = 2",
                   3,
                   2,
                   4,
                   {3, 0, 2, 3, 0, 1},
                   {7, 0, 6, 8, 1, 2},
                   {2, 1, 1, 2}},
        PlacesCase{"capacity",
                   "rows = 6 capacity = 2",
                   3,
                   2,
                   3,
                   {1, 0, 1, 2, 1, 2},
                   {1, 0, 2, 3, -1, 4},
                   {1, 2, 2}},
        // Experts 0 and 1 have a block of two rows for three choices.
        PlacesCase{"overflow",
                   "rows = 4 blocks = 2",
                   2,
                   2,
                   4,
                   {0, 1, 1, 3},
                   {0, 1, 4, 2},
                   {1, 2, 0, 1}},
        // The counts of all first halves come before those of second halves.
        PlacesCase{"parts",
                   "rows = 4 parts = 2",
                   4,
                   1,
                   3,
                   {2, 0, 0, 2, /**/ 1, 1, 2, 0},
                   {1, 0, 0, 1, /**/ 0, 1, 1, 0},
                   {1, 0, 1, /**/ 0, 2, 0, /**/ 1, 0, 1, /**/ 1, 0, 1},
                   2},
        // Three choices of expert 1 in the first half, one more in the second.
        PlacesCase{"capacity_of_parts",
                   "rows = 4 capacity = 2 parts = 2",
                   4,
                   2,
                   3,
                   {1, 0, 1, 1, 1, 0, 2, 0},
                   {1, 0, 2, -1, -1, 0, 1, -1},
                   {1, 2, 0, /**/ 1, 0, 1},
                   2}),
    [](const auto &info) { return info.param.name; });

/// The second half of a sequence, on a rank that knows the choices of both
/// halves: expert 0 has one left of two, expert 1 none.
TEST(Places, CountChoicesOfEarlierParts) {
  TestModule module(R"(
    func.func @f(%e: tensor<1x2x2xi32>, %all: tensor<2x3xi32>, %first: tensor<i32>) -> (tensor<1x2x2xi32>, tensor<1x3xi32>) {
      %p, %c = rota.expert_places %e others %all offset %first rows = 4 capacity = 2 : tensor<1x2x2xi32>, tensor<2x3xi32>, tensor<i32> -> tensor<1x3xi32>
      return %p, %c : tensor<1x2x2xi32>, tensor<1x3xi32>
    })");
  auto results =
      run(module, {Tensor({1, 2, 2}, {1, 0, 2, 0}),
                   Tensor({2, 3}, {1, 3, 0, 2, 1, 1}), Tensor({}, {1})});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].elements, (std::vector<double>{-1, 0, 1, -1}));
  EXPECT_EQ(results[1].elements, (std::vector<double>{1, 0, 1}));
}

TEST(GroupedProduct, RejectsMoreRowsThanABlockHas) {
  TestModule module(R"(
    func.func @f(%x: tensor<1x4x3xf32>, %w: tensor<2x3x1xf32>, %c: tensor<1x2xi32>) -> tensor<1x4x1xf32> {
      %r = rota.grouped_product %x, %w, %c blocks = 2 : (tensor<1x4x3xf32>, tensor<2x3x1xf32>, tensor<1x2xi32>) -> tensor<1x4x1xf32>
      return %r : tensor<1x4x1xf32>
    })");
  auto f = module.function("f");
  auto with = [&](double first, double second) {
    return runFunction(f, {Tensor({1, 4, 3}), Tensor({2, 3, 1}),
                           Tensor({1, 2}, {first, second})});
  };
  EXPECT_TRUE(succeeded(with(2, 2)));
  EXPECT_TRUE(failed(with(3, 0)));
  EXPECT_NE(module.takeDiagnostics().find("expected 2 rows or less"),
            std::string::npos);
}

/// The whole layer: y[t] = sum over the choices of w_j (x[t] W_e + b_e).
class Layer : public testing::TestWithParam<int64_t> {};

TEST_P(Layer, EqualsExpertsOneByOne) {
  // Two sequences of 5 tokens, 2 of 4 experts each, 3 to 2 elements; in every
  // block a token's choices may all fall.
  int64_t blocks = GetParam(), rows = 10 * blocks;
  std::string r = std::to_string(rows),
              of = " blocks = " + std::to_string(blocks);
  std::string in = "tensor<2x" + r + "x3xf64>",
              out = "tensor<2x" + r + "x2xf64>";
  std::string text =
      R"(
    func.func @f(%x: tensor<2x5x3xf64>, %z: tensor<2x5x4xf64>, %w: tensor<4x3x2xf64>, %b: tensor<4x2xf64>) -> (tensor<2x5x2xf64>, tensor<2x5x2xf64>, tensor<2x5x2xi32>) {
      %a, %e = rota.route %z normalize scaling = 1.0 : (tensor<2x5x4xf64>) -> (tensor<2x5x2xf64>, tensor<2x5x2xi32>)
      %p, %c = rota.expert_places %e rows = )" +
      r + of + R"( : tensor<2x5x2xi32> -> tensor<2x4xi32>
      %rows = rota.dispatch %x, %p : (tensor<2x5x3xf64>, tensor<2x5x2xi32>) -> )" +
      in + R"(
      %h = rota.grouped_product %rows, %w, %c)" +
      of + " : (" + in + R"(, tensor<4x3x2xf64>, tensor<2x4xi32>) -> )" + out +
      R"(
      %g = rota.grouped_bias %h, %b, %c)" +
      of + " : " + out +
      R"(, tensor<4x2xf64>, tensor<2x4xi32>
      %y = rota.combine %g, %p weights %a : ()" +
      out +
      R"(, tensor<2x5x2xi32>, tensor<2x5x2xf64>) -> tensor<2x5x2xf64>
      return %y, %a, %e : tensor<2x5x2xf64>, tensor<2x5x2xf64>, tensor<2x5x2xi32>
    })";
  TestModule module(text);
  Random random(3);
  Tensor x = random.uniform({2, 5, 3}, -1, 1),
         z = random.uniform({2, 5, 4}, -2, 2),
         w = random.uniform({4, 3, 2}, -1, 1),
         b = random.uniform({4, 2}, -1, 1);
  auto results = run(module, {x, z, w, b});
  ASSERT_EQ(results.size(), 3u);
  Tensor expected({2, 5, 2});
  for (int64_t choice = 0; choice < 20; ++choice)
    for (int64_t f = 0; f < 2; ++f) {
      int64_t expert = int64_t(results[2][choice]), token = choice / 2;
      double value = b({expert, f});
      for (int64_t e = 0; e < 3; ++e)
        value += x[token * 3 + e] * w({expert, e, f});
      expected[token * 2 + f] += results[1][choice] * value;
    }
  EXPECT_LT(relativeError(results[0], expected), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Blocks, Layer, testing::Values(1, 2, 4));

} // namespace
