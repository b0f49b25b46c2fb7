// SPDX-License-Identifier: Apache-2.0
//
// Update functions of one rank, on all ranks of a mesh, do what those of whole
// parameters do.
#include "ir/rota/model/Update.h"
#include "test/interpreter/MeshRun.h"
#include "test/passes/equivalence/Passes.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using mlir::func::FuncOp;
using mlir::rota::ParamOp;
using mlir::rota::ShardingAttr;

namespace {

/// Rows of 10 in parts of 3, columns divided too; a vector; and an update with
/// products of matrices.
constexpr const char *text = R"(
rota.mesh <data = 2, fsdp = 2, tensor = 2>
rota.param @uneven : tensor<10x8xf32> axes ["x", "y"] init #rota.constant<value = 1.0> placement <whole [10, 8] compute <[[], [tensor]]> storage <[[fsdp], [tensor]]> optimizer <[[fsdp, data], [tensor]]>>
rota.param @gain : tensor<8xf32> axes ["x"] init #rota.constant<value = 1.0> placement <whole [8] compute <[[]]> storage <[[fsdp]]> optimizer <[[fsdp, data]]>>
rota.param @matrix : tensor<4x8xf32> axes ["x", "y"] init #rota.constant<value = 1.0> placement <whole [4, 8] compute <[[], [tensor]]> storage <[[fsdp], [tensor]]> optimizer <[[fsdp], [tensor]]>> {rota.squares = @squares, rota.update = @update}
func.func @f() -> (tensor<10x8xf32>, tensor<8xbf16>, tensor<4x8xf32>) {
  %a = rota.read @uneven : tensor<10x8xf32>
  %b = rota.read @gain : tensor<8xbf16>
  %c = rota.read @matrix : tensor<4x8xf32>
  return %a, %b, %c : tensor<10x8xf32>, tensor<8xbf16>, tensor<4x8xf32>
}
func.func @update(%p: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[fsdp], [tensor]]>}, %g: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[fsdp], [tensor]]>}, %lr: tensor<f32> {rota.scalar = #rota.scalar<learning_rate>}) -> (tensor<4x8xf32> {rota.sharding = #rota.sharding<[[fsdp], [tensor]]>}, tensor<4x8xf32> {rota.sharding = #rota.sharding<[[fsdp], [tensor]]>}) {
  %zero = arith.constant dense<0.0> : tensor<4x8xf32>
  %a = rota.einsum "ij,kj->ik" %g, %g : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
  %b = rota.einsum "ik,kj->ij" %a, %g : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %rate = rota.broadcast %lr dims [] : tensor<f32> -> tensor<4x8xf32>
  %step = arith.mulf %rate, %b : tensor<4x8xf32>
  %q = arith.subf %p, %step : tensor<4x8xf32>
  return %q, %zero : tensor<4x8xf32>, tensor<4x8xf32>
}
func.func @squares(%g: tensor<4x8xf32> {rota.sharding = #rota.sharding<[[fsdp], [tensor]]>}) -> (tensor<4xf32> {rota.sharding = #rota.sharding<[[fsdp]] unreduced [tensor]>}) {
  %s = arith.mulf %g, %g : tensor<4x8xf32>
  %sum = rota.reduce sum %s dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  return %sum : tensor<4xf32>
}
)";

/// Values from 0.1 to 0.9; rows from 10 on are padding.
Tensor valuesOf(mlir::Type type, unsigned seed) {
  Tensor tensor(mlir::cast<mlir::RankedTensorType>(type).getShape());
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor[i] = i < 10 * 8 ? 0.1 * double((i + seed) % 9 + 1) : 0.0;
  return tensor;
}

/// A function of a parameter: its shardings and its whole run.
struct WholeRun {
  std::string name;
  llvm::SmallVector<Tensor> arguments, results;
};

TEST(Updates, OfPartsAreThoseOfWholeParameters) {
  TestModule module(text);
  ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
  ASSERT_TRUE(succeeded(runPasses(module, "build-updates{optimizer=adamw}")))
      << module.takeDiagnostics();
  std::vector<WholeRun> runs;
  for (ParamOp param : module.get().getOps<ParamOp>())
    for (FuncOp function : {mlir::rota::UpdateFunction::of(param).getFunction(),
                            mlir::rota::squaresOf(param)}) {
      WholeRun &run = runs.emplace_back();
      run.name = function.getSymName().str();
      for (mlir::Type type : function.getArgumentTypes())
        run.arguments.push_back(valuesOf(type, run.arguments.size()));
      auto results = runFunction(function, run.arguments);
      ASSERT_TRUE(succeeded(results)) << module.takeDiagnostics();
      run.results = *results;
    }
  ASSERT_TRUE(succeeded(
      runPasses(module, "propagate-shardings,insert-reshards,partition,cse,"
                        "merge-collectives,verify-partitioned")))
      << module.takeDiagnostics();
  mlir::rota::MeshAttr mesh = mlir::rota::meshOf(module.get());
  for (const WholeRun &run : runs) {
    FuncOp function = module.function(run.name);
    auto collectives =
        function.getBody().front().getOps<mlir::rota::CollectiveOpInterface>();
    EXPECT_EQ(collectives.empty(), run.name != "update") << run.name;
    auto results =
        runOnMesh(function, cutArguments(function, run.arguments, mesh));
    ASSERT_TRUE(succeeded(results)) << module.takeDiagnostics();
    for (auto [i, parts] : llvm::enumerate(*results)) {
      auto whole = join(function.getLoc(), parts, run.results[i].shape,
                        shardingOfResult(function, i), mesh);
      ASSERT_TRUE(succeeded(whole)) << module.takeDiagnostics();
      EXPECT_LT(relativeError(*whole, run.results[i]), 1e-6)
          << run.name << ", result " << i;
    }
  }
}

} // namespace
