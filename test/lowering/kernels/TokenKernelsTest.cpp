// SPDX-License-Identifier: Apache-2.0
//
// Embedding, cross-entropy, their derivatives and rotary embedding against
// plain loops in f64.
#include "test/lowering/kernels/CompileOp.h"
#include "test/lowering/kernels/KernelTesting.h"

#include <algorithm>
#include <limits>
#include <tuple>

using namespace rota::testing;

namespace {

Buffer randomTokens(int64_t count, int64_t vocabulary, unsigned seed) {
  Buffer tokens("i32", count);
  std::mt19937 engine(seed);
  for (int64_t i = 0; i < count; ++i)
    tokens.set(i, double(engine() % vocabulary));
  return tokens;
}

std::string function(const std::string &body) {
  return "func.func @f(" + body + "\nreturn }";
}

/// [columns, element type, processor]
class TokenKernels : public testing::TestWithParam<
                         std::tuple<int64_t, const char *, const char *>> {
protected:
  static constexpr int64_t kBatch = 2, kSequence = 7, kRows = 14;

  /// Two parts of a vocabulary give what the whole gives; the second ends in
  /// `padding` columns of zeros.
  static void crossEntropyInParts(int64_t part, const char *type,
                                  const char *cpu, int64_t padding);
};

TEST_P(TokenKernels, Embedding) {
  auto [columns, type, cpu] = GetParam();
  constexpr int64_t kVocabulary = 11;
  std::string table = tensor({kVocabulary, columns}, type);
  std::string result = tensor({kBatch, kSequence, columns}, type);
  auto op = compileOp(
      function("%t: tensor<2x7xi32>, %w: " + table +
               ") {\n%x = rota.embedding %t, %w : (tensor<2x7xi32>, " + table +
               ") -> " + result),
      {}, cpu);
  ASSERT_TRUE(op);
  Buffer tokens = randomTokens(kRows, kVocabulary, 1);
  Buffer weights = Buffer::random(type, kVocabulary * columns, 2);
  Buffer out(type, kRows * columns);
  op->runInPieces(3, {tokens.data(), weights.data(), out.data()});
  std::vector<double> expected;
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      expected.push_back(weights[int64_t(tokens[i]) * columns + j]);
  out.expectNear(expected, 0.0, "rows");
}

TEST_P(TokenKernels, EmbeddingGrad) {
  auto [columns, type, cpu] = GetParam();
  constexpr int64_t kVocabulary = 5;
  std::string cotangent = tensor({kBatch, kSequence, columns}, type);
  for (bool accumulate : {false, true}) {
    auto op = compileOp(
        function("%t: tensor<2x7xi32>, %d: " + cotangent +
                 ") {\n%x = rota.embedding_grad %t, %d : (tensor<2x7xi32>, " +
                 cotangent + ") -> " + tensor({kVocabulary, columns}, "f32")),
        {accumulate}, cpu);
    ASSERT_TRUE(op);
    Buffer tokens = randomTokens(kRows, kVocabulary - 1, 1);
    Buffer slopes = Buffer::random(type, kRows * columns, 2);
    Buffer out = Buffer::random("f32", kVocabulary * columns, 3);
    std::vector<double> expected(kVocabulary * columns);
    for (int64_t i = 0; accumulate && i < kVocabulary * columns; ++i)
      expected[i] = out[i];
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        expected[int64_t(tokens[i]) * columns + j] += slopes[i * columns + j];
    Buffer whole = out;
    op->runInPieces(1, {tokens.data(), slopes.data(), out.data()});
    op->run(nullptr, {tokens.data(), slopes.data(), whole.data()});
    out.expectNear(expected, 1e-6, accumulate ? "added" : "set");
    EXPECT_EQ(out.raw(), whole.raw());
  }
}

TEST_P(TokenKernels, CrossEntropyAndItsGradient) {
  auto [columns, type, cpu] = GetParam();
  std::string logits = tensor({kBatch, kSequence, columns}, type);
  auto forward = compileOp(
      function("%x: " + logits +
               ", %t: tensor<2x7xi32>) {\n%s, %w, %l = rota.cross_entropy %x, "
               "%t : (" +
               logits +
               ", tensor<2x7xi32>) -> (tensor<f32>, tensor<f32>, "
               "tensor<2x7xf32>)"),
      {}, cpu);
  auto backward = compileOp(
      function("%d: tensor<f32>, %x: " + logits +
               ", %t: tensor<2x7xi32>, %l: tensor<2x7xf32>) {\n%g = "
               "rota.cross_entropy_grad %d, %x, %t, %l : (tensor<f32>, " +
               logits + ", tensor<2x7xi32>, tensor<2x7xf32>) -> " + logits),
      {}, cpu);
  ASSERT_TRUE(forward && backward);
  Buffer x = Buffer::random(type, kRows * columns, 1, -20.0f, 20.0f);
  Buffer targets = randomTokens(kRows, columns, 2);
  targets.set(3, -1);
  targets.set(9, -100);
  Buffer sum("f32", 1), weight("f32", 1), lse("f32", kRows);
  forward->runInPieces(
      4, {x.data(), targets.data(), sum.data(), weight.data(), lse.data()});

  double total = 0.0, slope = 0.37;
  std::vector<double> expectedLse, expected(kRows * columns);
  for (int64_t i = 0; i < kRows; ++i) {
    double exponentials = 0.0;
    for (int64_t j = 0; j < columns; ++j)
      exponentials += std::exp(x[i * columns + j]);
    int64_t target = int64_t(targets[i]);
    expectedLse.push_back(target < 0 ? 0.0 : std::log(exponentials));
    if (target < 0)
      continue;
    total += expectedLse[i] - x[i * columns + target];
    for (int64_t j = 0; j < columns; ++j)
      expected[i * columns + j] =
          slope *
          (std::exp(x[i * columns + j] - expectedLse[i]) - (j == target));
  }
  lse.expectNear(expectedLse, 1e-6, "logsumexp");
  sum.expectNear({total}, 1e-6, "sum");
  weight.expectNear({12.0}, 0.0, "weight");

  Buffer cotangent("f32", 1), out(type, kRows * columns);
  cotangent.set(0, slope);
  backward->run(nullptr, {cotangent.data(), x.data(), targets.data(),
                          lse.data(), out.data()});
  out.expectNear(expected, 3e-6, "gradient");
  backward->runInPieces(
      1, {cotangent.data(), x.data(), targets.data(), lse.data(), x.data()});
  EXPECT_EQ(out.raw(), x.raw()) << "in place";
}

/// Kernels leave out numbers that have no place; the task fails beside them.
TEST_P(TokenKernels, NumbersWithoutAPlaceAreLeftOut) {
  auto [columns, type, cpu] = GetParam();
  constexpr int64_t kVocabulary = 5;
  std::string table = tensor({kVocabulary, columns}, type);
  std::string rows = tensor({kBatch, kSequence, columns}, type);
  auto forward = compileOp(
      function("%t: tensor<2x7xi32>, %w: " + table +
               ") {\n%x = rota.embedding %t, %w : (tensor<2x7xi32>, " + table +
               ") -> " + rows),
      {}, cpu);
  auto loss = compileOp(
      function("%x: " + rows +
               ", %t: tensor<2x7xi32>) {\n%a, %b, %c = rota.cross_entropy %x, "
               "%t : (" +
               rows +
               ", tensor<2x7xi32>) -> (tensor<f32>, tensor<f32>, "
               "tensor<2x7xf32>)"),
      {}, cpu);
  ASSERT_TRUE(forward && loss);
  Buffer numbers("i32", kRows), weights = Buffer::random(type, 5 * columns, 2);
  for (int64_t i = 0; i < kRows; ++i)
    numbers.set(i, i % 2 ? 1000000 : -1000000);
  Buffer out = Buffer::random(type, kRows * columns, 4);
  forward->run(nullptr, {numbers.data(), weights.data(), out.data()});
  out.expectNear(std::vector<double>(kRows * columns), 0.0, "rows");
  Buffer sum("f32", 1), weight("f32", 1), lse("f32", kRows);
  loss->run(nullptr, {out.data(), numbers.data(), sum.data(), weight.data(),
                      lse.data()});
  sum.expectNear({0.0}, 0.0, "sum");
}

TEST_P(TokenKernels, APartOfTheVocabulary) {
  auto [columns, type, cpu] = GetParam();
  // Rows 4, 5 and 6 of a vocabulary of 11: tokens before, in and after them.
  constexpr int64_t kVocabulary = 11, kFirst = 4, kPart = 3;
  std::string table = tensor({kPart, columns}, type);
  std::string gradient = tensor({kPart, columns}, "f32");
  std::string result = tensor({kBatch, kSequence, columns}, type);
  auto forward = compileOp(
      function("%t: tensor<2x7xi32>, %w: " + table +
               ", %o: tensor<i32>) {\n%x = rota.embedding %t, %w offset %o : "
               "(tensor<2x7xi32>, " +
               table + ", tensor<i32>) -> " + result),
      {}, cpu);
  Buffer tokens = randomTokens(kRows, kVocabulary, 1), offset("i32", 1);
  offset.set(0, kFirst);
  Buffer weights = Buffer::random(type, kPart * columns, 2);
  Buffer out = Buffer::random(type, kRows * columns, 4);
  std::vector<double> expected(kRows * columns);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      if (tokens[i] >= kFirst && tokens[i] < kFirst + kPart)
        expected[i * columns + j] =
            weights[(int64_t(tokens[i]) - kFirst) * columns + j];
  ASSERT_TRUE(forward);
  forward->runInPieces(
      3, {tokens.data(), weights.data(), offset.data(), out.data()});
  out.expectNear(expected, 0.0, "rows");

  for (bool accumulate : {false, true}) {
    auto backward = compileOp(
        function("%t: tensor<2x7xi32>, %d: " + result +
                 ", %o: tensor<i32>) {\n%x = rota.embedding_grad %t, %d "
                 "offset %o : (tensor<2x7xi32>, " +
                 result + ", tensor<i32>) -> " + gradient),
        {accumulate}, cpu);
    ASSERT_TRUE(backward);
    Buffer slopes = Buffer::random(type, kRows * columns, 2);
    Buffer sum = Buffer::random("f32", kPart * columns, 3);
    std::vector<double> sums(kPart * columns);
    for (int64_t i = 0; accumulate && i < kPart * columns; ++i)
      sums[i] = sum[i];
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        if (tokens[i] >= kFirst && tokens[i] < kFirst + kPart)
          sums[(int64_t(tokens[i]) - kFirst) * columns + j] +=
              slopes[i * columns + j];
    backward->runInPieces(
        1, {tokens.data(), slopes.data(), offset.data(), sum.data()});
    sum.expectNear(sums, 1e-6, accumulate ? "added" : "set");
  }
}

void TokenKernels::crossEntropyInParts(int64_t part, const char *type,
                                       const char *cpu, int64_t padding) {
  int64_t whole = 2 * part - padding;
  std::string end = padding ? "of " + std::to_string(whole) + " " : "";
  std::string logits = tensor({kBatch, kSequence, whole}, type);
  std::string partLogits = tensor({kBatch, kSequence, part}, type);
  std::string types = ", tensor<2x7xi32>";
  std::string losses = "(tensor<f32>, tensor<f32>, tensor<2x7xf32>)";
  auto one = compileOp(function("%x: " + logits +
                                ", %t: tensor<2x7xi32>) {\n%s, %w, %l = "
                                "rota.cross_entropy %x, %t : (" +
                                logits + types + ") -> " + losses),
                       {}, cpu);
  auto shard =
      compileOp(function("%x: " + partLogits +
                         ", %t: tensor<2x7xi32>, %o: tensor<i32>) "
                         "{\n%p = rota.cross_entropy_shard %x, %t offset %o " +
                         end + ": (" + partLogits + types +
                         ", tensor<i32>) -> tensor<2x7x2xf32>"),
                {}, cpu);
  auto merge = compileOp(
      function("%p: tensor<2x7x4xf32>, %t: tensor<2x7xi32>) {\n%s, %w, %l = "
               "rota.cross_entropy_merge %p, %t : (tensor<2x7x4xf32>" +
               types + ") -> " + losses),
      {}, cpu);
  auto slope = [&](const std::string &x, bool isPart) {
    std::string types = isPart ? ", tensor<i32>" : "";
    return compileOp(
        function("%d: tensor<f32>, %x: " + x +
                 ", %t: tensor<2x7xi32>, %l: tensor<2x7xf32>" +
                 (isPart ? ", %o: tensor<i32>" : "") +
                 ") {\n%g = rota.cross_entropy_grad %d, %x, %t, %l " +
                 (isPart ? "offset %o " + end : "") + ": (tensor<f32>, " + x +
                 ", tensor<2x7xi32>, tensor<2x7xf32>" + types + ") -> " + x),
        {}, cpu);
  };
  auto wholeSlope = slope(logits, false), partSlope = slope(partLogits, true);
  ASSERT_TRUE(one && shard && merge && wholeSlope && partSlope);

  Buffer x = Buffer::random(type, kRows * whole, 1, -20.0f, 20.0f);
  Buffer targets = randomTokens(kRows, whole, 2);
  targets.set(3, -1);
  Buffer sum("f32", 1), weight("f32", 1), lse("f32", kRows);
  one->run(nullptr,
           {x.data(), targets.data(), sum.data(), weight.data(), lse.data()});
  Buffer cotangent("f32", 1), gradient(type, kRows * whole);
  cotangent.set(0, 0.37);
  wholeSlope->run(nullptr, {cotangent.data(), x.data(), targets.data(),
                            lse.data(), gradient.data()});

  Buffer parts("f32", kRows * 4);
  for (int64_t p = 0; p < 2; ++p) {
    Buffer columnsOf(type, kRows * part), pair("f32", kRows * 2);
    Buffer offset("i32", 1);
    offset.set(0, double(p * part));
    std::vector<double> expected(kRows * part);
    for (int64_t i = 0; i < kRows * part; ++i) {
      int64_t entry = p * part + i % part, from = i / part * whole + entry;
      columnsOf.set(i, entry < whole ? x[from] : 0.0);
      expected[i] = entry < whole ? gradient[from] : 0.0;
    }
    shard->runInPieces(
        4, {columnsOf.data(), targets.data(), offset.data(), pair.data()});
    for (int64_t i = 0; i < kRows * 2; ++i)
      parts.set(i / 2 * 4 + p * 2 + i % 2, pair[i]);
    partSlope->runInPieces(3,
                           {cotangent.data(), columnsOf.data(), targets.data(),
                            lse.data(), offset.data(), columnsOf.data()});
    columnsOf.expectNear(expected, 0.0, "gradient");
  }
  Buffer mergedSum("f32", 1), mergedWeight("f32", 1), mergedLse("f32", kRows);
  merge->runInPieces(5, {parts.data(), targets.data(), mergedSum.data(),
                         mergedWeight.data(), mergedLse.data()});
  mergedSum.expectNear({sum[0]}, 1e-6, "sum");
  mergedWeight.expectNear({13.0}, 0.0, "weight");
  std::vector<double> lses;
  for (int64_t i = 0; i < kRows; ++i)
    lses.push_back(lse[i]);
  mergedLse.expectNear(lses, 1e-6, "logsumexp");
}

TEST_P(TokenKernels, CrossEntropyInParts) {
  auto [columns, type, cpu] = GetParam();
  crossEntropyInParts(columns, type, cpu, 0);
}

TEST_P(TokenKernels, CrossEntropyInPaddedParts) {
  auto [columns, type, cpu] = GetParam();
  for (int64_t padding : {(columns + 1) / 2, columns})
    crossEntropyInParts(columns, type, cpu, padding);
}

TEST_P(TokenKernels, RopeAndItsInverse) {
  auto [columns, type, cpu] = GetParam();
  int64_t size = 2 * columns, heads = 3, positions = 9;
  std::string operand = tensor({kBatch, kSequence, heads, size}, type);
  std::string table = tensor({positions, columns, 2}, "f32");
  Buffer x = Buffer::random(type, kRows * heads * size, 1);
  Buffer angles = Buffer::random("f32", positions * size, 2);
  for (bool inverse : {false, true}) {
    auto op = compileOp(function("%x: " + operand + ", %t: " + table +
                                 ") {\n%y = rota.rope " +
                                 (inverse ? "inverse " : "") +
                                 "%x, %t : " + operand + ", " + table),
                        {}, cpu);
    ASSERT_TRUE(op);
    std::vector<double> expected(kRows * heads * size);
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < columns; ++i) {
          int64_t at = (row * heads + h) * size + i;
          int64_t angle = (row % kSequence * columns + i) * 2;
          double c = angles[angle], s = angles[angle + 1] * (inverse ? -1 : 1);
          expected[at] = x[at] * c - x[at + columns] * s;
          expected[at + columns] = x[at + columns] * c + x[at] * s;
        }
    Buffer out(type, kRows * heads * size), same = x;
    op->runInPieces(5, {x.data(), angles.data(), out.data()});
    out.expectNear(expected, 1e-6, inverse ? "inverse" : "rotated");
    op->run(nullptr, {same.data(), angles.data(), same.data()});
    EXPECT_EQ(out.raw(), same.raw()) << "in place";
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenKernels,
                         testing::Combine(testing::Values<int64_t>(1, 3, 8, 24,
                                                                   64, 147),
                                          testing::Values("f32", "bf16"),
                                          testing::ValuesIn(processors())),
                         [](const auto &info) {
                           std::string name =
                               "C" + std::to_string(std::get<0>(info.param)) +
                               "_" + std::get<1>(info.param) + "_" +
                               std::get<2>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(TokenKernels, CrossEntropyShowsAnInvalidLogit) {
  auto forward = compileOp(
      "func.func @f(%x: tensor<1x1x40xf32>, %t: tensor<1x1xi32>) {\n"
      "%s, %w, %l = rota.cross_entropy %x, %t : (tensor<1x1x40xf32>, "
      "tensor<1x1xi32>) -> (tensor<f32>, tensor<f32>, tensor<1x1xf32>)\n"
      "return }");
  ASSERT_TRUE(forward);
  for (float wrong : {std::numeric_limits<float>::quiet_NaN(),
                      std::numeric_limits<float>::infinity()}) {
    Buffer x = Buffer::random("f32", 40, 1), targets("i32", 1);
    x.set(17, wrong);
    targets.set(0, 2);
    Buffer sum("f32", 1), weight("f32", 1), lse("f32", 1);
    forward->run(nullptr, {x.data(), targets.data(), sum.data(), weight.data(),
                           lse.data()});
    EXPECT_FALSE(std::isfinite(sum[0])) << wrong;
  }
}

TEST(TokenKernels, OnlyEmbeddingGradAdds) {
  EXPECT_FALSE(compileOp(
      "func.func @f(%t: tensor<1x2xi32>, %w: tensor<4x8xf32>) {\n"
      "%x = rota.embedding %t, %w : (tensor<1x2xi32>, tensor<4x8xf32>) -> "
      "tensor<1x2x8xf32>\nreturn }",
      {true}));
}

} // namespace
