// SPDX-License-Identifier: Apache-2.0
//
// A vocabulary in parts gives the results of the whole one: rows of a table,
// their gradient, cross-entropy and its derivative.
#include "test/interpreter/GradientCheck.h"
#include "test/interpreter/TestModule.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace rota::interpreter;

namespace {

// A vocabulary of 6 in parts of 4 and 2; batch 1, sequence 5, embed 3.
constexpr const char *kFunctions = R"(
  func.func @embed(%t: tensor<1x5xi32>, %w: tensor<6x3xf64>) -> tensor<1x5x3xf64> {
    %x = rota.embedding %t, %w : (tensor<1x5xi32>, tensor<6x3xf64>) -> tensor<1x5x3xf64>
    return %x : tensor<1x5x3xf64>
  }
  func.func @embed_4(%t: tensor<1x5xi32>, %w: tensor<4x3xf64>, %o: tensor<i32>) -> tensor<1x5x3xf64> {
    %x = rota.embedding %t, %w offset %o : (tensor<1x5xi32>, tensor<4x3xf64>, tensor<i32>) -> tensor<1x5x3xf64>
    return %x : tensor<1x5x3xf64>
  }
  func.func @embed_2(%t: tensor<1x5xi32>, %w: tensor<2x3xf64>, %o: tensor<i32>) -> tensor<1x5x3xf64> {
    %x = rota.embedding %t, %w offset %o : (tensor<1x5xi32>, tensor<2x3xf64>, tensor<i32>) -> tensor<1x5x3xf64>
    return %x : tensor<1x5x3xf64>
  }
  func.func @embed_grad(%t: tensor<1x5xi32>, %d: tensor<1x5x3xf64>) -> tensor<6x3xf64> {
    %w = rota.embedding_grad %t, %d : (tensor<1x5xi32>, tensor<1x5x3xf64>) -> tensor<6x3xf64>
    return %w : tensor<6x3xf64>
  }
  func.func @embed_grad_4(%t: tensor<1x5xi32>, %d: tensor<1x5x3xf64>, %o: tensor<i32>) -> tensor<4x3xf64> {
    %w = rota.embedding_grad %t, %d offset %o : (tensor<1x5xi32>, tensor<1x5x3xf64>, tensor<i32>) -> tensor<4x3xf64>
    return %w : tensor<4x3xf64>
  }
  func.func @embed_grad_2(%t: tensor<1x5xi32>, %d: tensor<1x5x3xf64>, %o: tensor<i32>) -> tensor<2x3xf64> {
    %w = rota.embedding_grad %t, %d offset %o : (tensor<1x5xi32>, tensor<1x5x3xf64>, tensor<i32>) -> tensor<2x3xf64>
    return %w : tensor<2x3xf64>
  }
  func.func @loss(%x: tensor<1x5x6xf64>, %t: tensor<1x5xi32>) -> (tensor<f64>, tensor<f64>, tensor<1x5xf64>) {
    %s, %w, %l = rota.cross_entropy %x, %t : (tensor<1x5x6xf64>, tensor<1x5xi32>) -> (tensor<f64>, tensor<f64>, tensor<1x5xf64>)
    return %s, %w, %l : tensor<f64>, tensor<f64>, tensor<1x5xf64>
  }
  func.func @loss_4(%x: tensor<1x5x4xf64>, %t: tensor<1x5xi32>, %o: tensor<i32>) -> tensor<1x5x2xf64> {
    %p = rota.cross_entropy_shard %x, %t offset %o : (tensor<1x5x4xf64>, tensor<1x5xi32>, tensor<i32>) -> tensor<1x5x2xf64>
    return %p : tensor<1x5x2xf64>
  }
  func.func @loss_2(%x: tensor<1x5x2xf64>, %t: tensor<1x5xi32>, %o: tensor<i32>) -> tensor<1x5x2xf64> {
    %p = rota.cross_entropy_shard %x, %t offset %o : (tensor<1x5x2xf64>, tensor<1x5xi32>, tensor<i32>) -> tensor<1x5x2xf64>
    return %p : tensor<1x5x2xf64>
  }
  func.func @merge(%p: tensor<1x5x4xf64>, %t: tensor<1x5xi32>) -> (tensor<f64>, tensor<f64>, tensor<1x5xf64>) {
    %s, %w, %l = rota.cross_entropy_merge %p, %t : (tensor<1x5x4xf64>, tensor<1x5xi32>) -> (tensor<f64>, tensor<f64>, tensor<1x5xf64>)
    return %s, %w, %l : tensor<f64>, tensor<f64>, tensor<1x5xf64>
  }
  func.func @loss_grad(%d: tensor<f64>, %x: tensor<1x5x6xf64>, %t: tensor<1x5xi32>, %l: tensor<1x5xf64>) -> tensor<1x5x6xf64> {
    %g = rota.cross_entropy_grad %d, %x, %t, %l : (tensor<f64>, tensor<1x5x6xf64>, tensor<1x5xi32>, tensor<1x5xf64>) -> tensor<1x5x6xf64>
    return %g : tensor<1x5x6xf64>
  }
  func.func @rows_grad(%d: tensor<f64>, %x: tensor<1x5x6xf64>, %t: tensor<1x5xi32>, %l: tensor<1x5xf64>, %r: tensor<1x5xf64>) -> tensor<1x5x6xf64> {
    %g = rota.cross_entropy_grad %d, %x, %t, %l rows %r : (tensor<f64>, tensor<1x5x6xf64>, tensor<1x5xi32>, tensor<1x5xf64>, tensor<1x5xf64>) -> tensor<1x5x6xf64>
    return %g : tensor<1x5x6xf64>
  }
  func.func @rows_grad_4(%d: tensor<f64>, %x: tensor<1x5x4xf64>, %t: tensor<1x5xi32>, %l: tensor<1x5xf64>, %o: tensor<i32>, %r: tensor<1x5xf64>) -> tensor<1x5x4xf64> {
    %g = rota.cross_entropy_grad %d, %x, %t, %l offset %o rows %r : (tensor<f64>, tensor<1x5x4xf64>, tensor<1x5xi32>, tensor<1x5xf64>, tensor<i32>, tensor<1x5xf64>) -> tensor<1x5x4xf64>
    return %g : tensor<1x5x4xf64>
  }
  func.func @loss_grad_4(%d: tensor<f64>, %x: tensor<1x5x4xf64>, %t: tensor<1x5xi32>, %l: tensor<1x5xf64>, %o: tensor<i32>) -> tensor<1x5x4xf64> {
    %g = rota.cross_entropy_grad %d, %x, %t, %l offset %o : (tensor<f64>, tensor<1x5x4xf64>, tensor<1x5xi32>, tensor<1x5xf64>, tensor<i32>) -> tensor<1x5x4xf64>
    return %g : tensor<1x5x4xf64>
  }
  func.func @loss_grad_2(%d: tensor<f64>, %x: tensor<1x5x2xf64>, %t: tensor<1x5xi32>, %l: tensor<1x5xf64>, %o: tensor<i32>) -> tensor<1x5x2xf64> {
    %g = rota.cross_entropy_grad %d, %x, %t, %l offset %o : (tensor<f64>, tensor<1x5x2xf64>, tensor<1x5xi32>, tensor<1x5xf64>, tensor<i32>) -> tensor<1x5x2xf64>
    return %g : tensor<1x5x2xf64>
  })";

class Vocabulary : public testing::Test {
protected:
  llvm::SmallVector<Tensor> run(llvm::StringRef name,
                                llvm::ArrayRef<Tensor> arguments) {
    auto results = runFunction(module.function(name), arguments);
    EXPECT_TRUE(succeeded(results)) << name.str();
    return succeeded(results) ? *results : llvm::SmallVector<Tensor>();
  }

  /// `count` columns from `first` on of each row.
  static Tensor columns(const Tensor &whole, int64_t first, int64_t count) {
    llvm::SmallVector<int64_t, 4> shape(whole.shape);
    int64_t width = std::exchange(shape.back(), count);
    Tensor part(shape);
    for (int64_t i = 0; i < part.size(); ++i)
      part[i] = whole[i / count * width + first + i % count];
    return part;
  }

  TestModule module{kFunctions};
  Random random{5};
  Tensor tokens{{1, 5}, {3, 0, 5, 4, 3}}, targets{{1, 5}, {1, 4, -1, 5, 0}};
  Tensor zero = Tensor::scalar(0), four = Tensor::scalar(4);
};

TEST_F(Vocabulary, RowsOfPartsAddUp) {
  Tensor table = random.uniform({6, 3}, -1, 1);
  Tensor first({4, 3}), second({2, 3});
  std::copy_n(table.elements.begin(), 12, first.elements.begin());
  std::copy_n(table.elements.begin() + 12, 6, second.elements.begin());
  Tensor sum = run("embed_4", {tokens, first, zero})[0];
  EXPECT_EQ(sum[2 * 3], 0) << "token 5 is of the other part";
  sum += run("embed_2", {tokens, second, four})[0];
  EXPECT_EQ(sum.elements, run("embed", {tokens, table})[0].elements);
}

TEST_F(Vocabulary, GradientsOfPartsStandOneAfterTheOther) {
  Tensor slopes = random.uniform({1, 5, 3}, -1, 1);
  std::vector<double> parts =
      run("embed_grad_4", {tokens, slopes, zero})[0].elements;
  auto second = run("embed_grad_2", {tokens, slopes, four})[0].elements;
  parts.insert(parts.end(), second.begin(), second.end());
  EXPECT_EQ(parts, run("embed_grad", {tokens, slopes})[0].elements);
}

TEST_F(Vocabulary, PartsMergeIntoTheCrossEntropyAndItsDerivative) {
  Tensor logits = random.uniform({1, 5, 6}, -3, 3);
  Tensor first = columns(logits, 0, 4), second = columns(logits, 4, 2);
  Tensor ofFirst = run("loss_4", {first, targets, zero})[0];
  Tensor ofSecond = run("loss_2", {second, targets, four})[0];
  Tensor parts({1, 5, 4});
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t i = 0; i < 2; ++i) {
      parts[4 * row + i] = ofFirst[2 * row + i];
      parts[4 * row + 2 + i] = ofSecond[2 * row + i];
    }
  auto merged = run("merge", {parts, targets});
  auto whole = run("loss", {logits, targets});
  ASSERT_EQ(merged.size(), 3u);
  for (auto [ofParts, expected] : llvm::zip_equal(merged, whole))
    EXPECT_LT(relativeError(ofParts, expected), 1e-14);
  EXPECT_EQ(merged[1][0], 4);

  Tensor slope = Tensor::scalar(0.3);
  Tensor expected = run("loss_grad", {slope, logits, targets, whole[2]})[0];
  EXPECT_EQ(
      run("loss_grad_4", {slope, first, targets, whole[2], zero})[0].elements,
      columns(expected, 0, 4).elements);
  EXPECT_EQ(
      run("loss_grad_2", {slope, second, targets, whole[2], four})[0].elements,
      columns(expected, 4, 2).elements);
}

TEST_F(Vocabulary, RowsWhoseTargetIsNegativeDoNotCount) {
  Tensor logits = random.uniform({1, 5, 6}, -3, 3);
  auto whole = run("loss", {logits, targets});
  ASSERT_EQ(targets[2], -1);
  EXPECT_EQ(whole[2][2], 0) << "its logsumexp";
  Tensor slope = Tensor::scalar(0.3), rows = random.uniform({1, 5}, -1, 1);
  Tensor expected =
      run("rows_grad", {slope, logits, targets, whole[2], rows})[0];
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(expected[2 * 6 + i], 0);
  // The cotangent of a row's logsumexp is that of a softmax in its row.
  Tensor without = run("loss_grad", {slope, logits, targets, whole[2]})[0];
  EXPECT_NEAR(expected[1],
              without[1] + rows[0] * std::exp(logits[1] - whole[2][0]), 1e-14);
  Tensor part = columns(logits, 0, 4);
  EXPECT_EQ(run("rows_grad_4", {slope, part, targets, whole[2], zero, rows})[0]
                .elements,
            columns(expected, 0, 4).elements);
}

} // namespace
