// SPDX-License-Identifier: Apache-2.0
//
// Attention around a balanced ring of any number of ranks, odd ones among them:
// what it computes, and how much of the work each rank has.
#include "test/interpreter/GradientCheck.h"
#include "test/interpreter/MeshRun.h"
#include "test/passes/equivalence/Passes.h"

#include "ir/rota/sharding/Sharding.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using mlir::func::FuncOp;

namespace {

constexpr double tolerance = 1e-10;

/// Forward and backward of grouped heads with sinks and a soft cap, whose
/// values are of another size than keys.
std::string textOf(int64_t ranks, int64_t length) {
  std::string text = R"(
    rota.mesh <context = $C>
    func.func @f(%q: tensor<2x$Sx4x6xf64> {rota.sharding = $B}, %k: tensor<2x$Sx2x6xf64> {rota.sharding = $B}, %v: tensor<2x$Sx2x3xf64> {rota.sharding = $B}, %do: tensor<2x$Sx4x3xf64> {rota.sharding = $B}, %s: tensor<4xf64>) -> (tensor<2x$Sx4x3xf64> {rota.sharding = $B}, tensor<2x4x$Sxf64> {rota.sharding = #rota.sharding<[[], [], [context]]>}, tensor<2x$Sx4x6xf64> {rota.sharding = $B}, tensor<2x$Sx2x6xf64> {rota.sharding = $B}, tensor<2x$Sx2x3xf64> {rota.sharding = $B}, tensor<4xf64> {rota.sharding = #rota.sharding<[[]]>}) {
      %o, %l = rota.attention %q, %k, %v sinks %s scale = 0.6 soft_cap = 1.5 ring balanced : (tensor<2x$Sx4x6xf64>, tensor<2x$Sx2x6xf64>, tensor<2x$Sx2x3xf64>, tensor<4xf64>) -> (tensor<2x$Sx4x3xf64>, tensor<2x4x$Sxf64>)
      %dq, %dk, %dv, %ds = rota.attention_grad %do, %q, %k, %v, %o, %l sinks %s scale = 0.6 soft_cap = 1.5 ring balanced : (tensor<2x$Sx4x3xf64>, tensor<2x$Sx4x6xf64>, tensor<2x$Sx2x6xf64>, tensor<2x$Sx2x3xf64>, tensor<2x$Sx4x3xf64>, tensor<2x4x$Sxf64>, tensor<4xf64>) -> (tensor<2x$Sx4x6xf64>, tensor<2x$Sx2x6xf64>, tensor<2x$Sx2x3xf64>, tensor<4xf64>)
      return %o, %l, %dq, %dk, %dv, %ds : tensor<2x$Sx4x3xf64>, tensor<2x4x$Sxf64>, tensor<2x$Sx4x6xf64>, tensor<2x$Sx2x6xf64>, tensor<2x$Sx2x3xf64>, tensor<4xf64>
    })";
  auto replace = [&](std::string_view from, const std::string &to) {
    for (size_t at; (at = text.find(from)) != std::string::npos;)
      text.replace(at, from.size(), to);
  };
  replace("$B", "#rota.sharding<[[], [context], [], []]>");
  replace("$C", std::to_string(ranks));
  replace("$S", std::to_string(length));
  return text;
}

class BalancedRing : public testing::TestWithParam<int64_t> {
protected:
  /// Two positions in a half-block.
  BalancedRing() : ranks(GetParam()), length(4 * ranks) {}

  void partition(TestModule &module) {
    ASSERT_TRUE(succeeded(runPasses(
        module, "propagate-shardings,insert-reshards{mode=auto},partition,cse,"
                "merge-collectives,verify-partitioned")))
        << module.takeDiagnostics();
  }

  int64_t ranks, length;
};

TEST_P(BalancedRing, ComputesAttentionAndItsDerivative) {
  TestModule module(textOf(ranks, length));
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  Random random(ranks);
  llvm::SmallVector<Tensor> arguments;
  for (mlir::Type type : module.function("f").getArgumentTypes())
    arguments.push_back(random.uniform(
        llvm::cast<mlir::RankedTensorType>(type).getShape(), -1, 1));
  auto expected = runFunction(module.function("f"), arguments);
  ASSERT_TRUE(succeeded(expected)) << module.takeDiagnostics();
  partition(module);
  FuncOp function = module.function("f");
  auto mesh = mlir::rota::meshOf(module.get());
  auto parts = runOnMesh(function, cutArguments(function, arguments, mesh));
  ASSERT_TRUE(succeeded(parts)) << module.takeDiagnostics();
  for (auto [index, held] : llvm::enumerate(*parts)) {
    const Tensor &whole = (*expected)[index];
    auto joined = join(function.getLoc(), held, whole.shape,
                       shardingOfResult(function, index), mesh);
    ASSERT_TRUE(succeeded(joined)) << module.takeDiagnostics();
    EXPECT_LT(relativeError(*joined, whole), tolerance) << "result " << index;
  }
}

/// Pairs of a query and a key that are seen on the rank.
template <typename Op> int64_t pairsOf(Op op, int64_t rank, int64_t ranks) {
  int64_t half = shapeOf(op.getQuery())[1];
  if (!op.getPosition())
    return half * (half + 1) / 2;
  auto numberOf = [&](mlir::Value value) {
    auto offset = value.getDefiningOp<mlir::rota::ShardOffsetOp>();
    int64_t position = (rank + int64_t(offset.getShift())) % ranks;
    return int64_t(offset.getStart()) + position * int64_t(offset.getFactor());
  };
  return numberOf(op.getKeyPosition()) < numberOf(op.getPosition())
             ? half * half
             : 0;
}

TEST_P(BalancedRing, GivesAllRanksEqualWork) {
  TestModule module(textOf(ranks, length));
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  partition(module);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    int64_t forward = 0, backward = 0;
    module.get().walk([&](mlir::rota::AttentionOp op) {
      forward += pairsOf(op, rank, ranks);
    });
    module.get().walk([&](mlir::rota::AttentionGradOp op) {
      backward += pairsOf(op, rank, ranks);
    });
    int64_t share = length * (length + 1) / 2 / ranks;
    EXPECT_EQ(forward, share) << "of rank " << rank;
    EXPECT_EQ(backward, share) << "of rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, BalancedRing, testing::Values(2, 3, 4, 5, 8),
                         [](const auto &info) {
                           return std::to_string(info.param);
                         });

} // namespace
