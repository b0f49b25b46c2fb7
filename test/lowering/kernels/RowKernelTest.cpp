// SPDX-License-Identifier: Apache-2.0
//
// Native row kernels against the interpreter: odd shapes, both element types,
// sums over rows, accumulation, results on operands, any split of the rows.
#include "test/interpreter/TestModule.h"
#include "test/lowering/kernels/KernelHarness.h"
#include "test/lowering/kernels/RandomTensor.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using rota::test::KernelHarness;
using rota::test::randomTensor;

namespace {

/// `text` with $R rows, $C columns, $N = rows * columns and $T the element
/// type.
std::string fill(std::string text, int64_t rows, int64_t columns,
                 const std::string &type) {
  auto replace = [&](const std::string &from, const std::string &to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  };
  replace("$R", std::to_string(rows));
  replace("$C", std::to_string(columns));
  replace("$T", type);
  return text;
}

/// Rows less their mean, computed in f32: $W widens, $V narrows.
const char *const kNorm = R"(
  rota.kernel @norm operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>]
      results [#rota.result<row>, #rota.result<row>] {
  ^bb0(%x: tensor<$Cx$T>, %gain: tensor<$Cxf32>):
    %wide = arith.$W
    %square = arith.mulf %wide, %wide : tensor<$Cxf32>
    %sum = rota.reduce sum %square dims [0] : tensor<$Cxf32> -> tensor<f32>
    %n = arith.constant dense<3.0> : tensor<f32>
    %mean = arith.divf %sum, %n : tensor<f32>
    %b = rota.broadcast %mean dims [] : tensor<f32> -> tensor<$Cxf32>
    %d = arith.subf %wide, %b : tensor<$Cxf32>
    %y = arith.mulf %d, %gain : tensor<$Cxf32>
    %narrow = arith.$V
    rota.yield %narrow, %mean : tensor<$Cx$T>, tensor<f32>
  }
  func.func @f(%x: tensor<$Rx$Cx$T>, %gain: tensor<$Cxf32>) -> (tensor<$Rx$Cx$T>, tensor<$Rxf32>) {
    %y:2 = rota.launch @norm rows = $R (%x, %gain) : (tensor<$Rx$Cx$T>, tensor<$Cxf32>) -> (tensor<$Rx$Cx$T>, tensor<$Rxf32>)
    return %y#0, %y#1 : tensor<$Rx$Cx$T>, tensor<$Rxf32>
  })";

const char *const kSoftmax = R"(
  rota.kernel @softmax operands [affine_map<(d0) -> (d0)>] results [#rota.result<row>] {
  ^bb0(%x: tensor<$Cx$T>):
    %max = rota.reduce max %x dims [0] : tensor<$Cx$T> -> tensor<$T>
    %m = rota.broadcast %max dims [] : tensor<$T> -> tensor<$Cx$T>
    %d = arith.subf %x, %m : tensor<$Cx$T>
    %e = math.exp %d : tensor<$Cx$T>
    %sum = rota.reduce sum %e dims [0] : tensor<$Cx$T> -> tensor<$T>
    %s = rota.broadcast %sum dims [] : tensor<$T> -> tensor<$Cx$T>
    %y = arith.divf %e, %s : tensor<$Cx$T>
    rota.yield %y : tensor<$Cx$T>
  }
  func.func @f(%x: tensor<$Rx$Cx$T>) -> tensor<$Rx$Cx$T> {
    %y = rota.launch @softmax rows = $R (%x) : (tensor<$Rx$Cx$T>) -> tensor<$Rx$Cx$T>
    return %y : tensor<$Rx$Cx$T>
  })";

/// Sums over the rows, of a row and of a value per row; another row's operand.
const char *const kSums = R"(
  rota.kernel @sums operands [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 mod 1)>, affine_map<(d0) -> (d0 floordiv 2)>]
      results [#rota.result<sum>, #rota.result<sum>, #rota.result<row>] {
  ^bb0(%x: tensor<$Cxf32>, %y: tensor<$Cx$T>, %s: tensor<f32>):
    %b = rota.broadcast %s dims [] : tensor<f32> -> tensor<$Cxf32>
    %p = arith.mulf %x, %b : tensor<$Cxf32>
    %q = arith.negf %y : tensor<$Cx$T>
    %total = rota.reduce sum %p dims [0] : tensor<$Cxf32> -> tensor<f32>
    rota.yield %p, %total, %q : tensor<$Cxf32>, tensor<f32>, tensor<$Cx$T>
  }
  func.func @f(%x: tensor<$Rx$Cxf32>, %y: tensor<1x$Cx$T>, %s: tensor<$Rxf32>) -> (tensor<$Cxf32>, tensor<f32>, tensor<$Rx$Cx$T>) {
    %r:3 = rota.launch @sums rows = $R (%x, %y, %s) : (tensor<$Rx$Cxf32>, tensor<1x$Cx$T>, tensor<$Rxf32>) -> (tensor<$Cxf32>, tensor<f32>, tensor<$Rx$Cx$T>)
    return %r#0, %r#1, %r#2 : tensor<$Cxf32>, tensor<f32>, tensor<$Rx$Cx$T>
  })";

struct Shape {
  int64_t rows, columns;
  const char *type;
};

void PrintTo(const Shape &shape, std::ostream *stream) {
  *stream << shape.rows << "x" << shape.columns << "x" << shape.type;
}

std::vector<Shape> shapes() {
  std::vector<Shape> result;
  for (int64_t columns : {1, 2, 7, 28, 33, 768, 1000})
    for (int64_t rows : {1, 3, 37, 130})
      for (const char *type : {"f32", "bf16"})
        if (rows < 130 || columns < 40)
          result.push_back({rows, columns, type});
  return result;
}

class RowKernelTest : public testing::TestWithParam<Shape> {
protected:
  std::string fillShape(std::string text) {
    bool bf16 = GetParam().type == std::string("bf16");
    auto replace = [&](const std::string &from, const std::string &to) {
      if (size_t at = text.find(from); at != std::string::npos)
        text.replace(at, from.size(), to);
    };
    replace("$W", bf16 ? "extf %x : tensor<$Cxbf16> to tensor<$Cxf32>"
                       : "addf %x, %x : tensor<$Cxf32>");
    replace("$V", bf16 ? "truncf %y : tensor<$Cxf32> to tensor<$Cxbf16>"
                       : "addf %y, %y : tensor<$Cxf32>");
    return fill(text, GetParam().rows, GetParam().columns, GetParam().type);
  }

  /// Runs the kernels of `f` in several ways and compares with the interpreter.
  void check(const char *text, double tolerance, bool accumulate = false) {
    TestModule module(fillShape(text));
    ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
    auto function = module.function("f");
    std::vector<Tensor> arguments, initial;
    for (mlir::Type type : function.getArgumentTypes())
      arguments.push_back(randomTensor(type, arguments.size()));
    auto expected = runFunction(function, arguments, Options{true});
    ASSERT_TRUE(succeeded(expected)) << module.takeDiagnostics();
    if (accumulate)
      for (mlir::Type type : function.getResultTypes())
        initial.push_back(randomTensor(type, 100 + initial.size()));
    llvm::SmallVector<bool> flags(function.getNumResults(), accumulate);
    auto harness = KernelHarness::compile(function, flags);
    ASSERT_TRUE(harness) << module.takeDiagnostics();

    auto results = harness->run(arguments, 1, initial);
    for (size_t i = 0; i < results.size(); ++i) {
      Tensor want = (*expected)[i];
      if (accumulate)
        want += initial[i];
      EXPECT_LE(relativeError(results[i], want), tolerance) << "result " << i;
    }
    for (int64_t pieces : {2, 3, 5}) {
      auto split = harness->run(arguments, pieces, initial);
      for (size_t i = 0; i < results.size(); ++i)
        EXPECT_EQ(split[i].elements, results[i].elements) << pieces;
    }
    // The bits do not depend on the processor.
    if (GetParam().columns == 33)
      for (const std::string &cpu : rota::test::otherProcessors()) {
        auto other = KernelHarness::compile(function, flags, {cpu});
        ASSERT_TRUE(other) << module.takeDiagnostics();
        auto otherResults = other->run(arguments, 1, initial);
        for (size_t i = 0; i < results.size(); ++i)
          EXPECT_EQ(otherResults[i].elements, results[i].elements) << cpu;
      }
    if (!accumulate) {
      auto inPlace = harness->runInPlace(arguments);
      for (size_t i = 0; i < results.size(); ++i)
        EXPECT_EQ(inPlace[i].elements, results[i].elements);
    }
  }

  /// Half a unit in the last place of bf16, or a few of f32.
  double tolerance() const {
    return GetParam().type == std::string("bf16") ? 5e-3 : 3e-6;
  }
};

TEST_P(RowKernelTest, NormalizesRows) { check(kNorm, tolerance()); }

TEST_P(RowKernelTest, ReducesTwice) { check(kSoftmax, 4 * tolerance()); }

TEST_P(RowKernelTest, SumsOverRows) { check(kSums, tolerance()); }

TEST_P(RowKernelTest, AddsToItsResults) {
  check(kSums, tolerance(), /*accumulate=*/true);
}

INSTANTIATE_TEST_SUITE_P(Shapes, RowKernelTest, testing::ValuesIn(shapes()));

} // namespace
