// SPDX-License-Identifier: Apache-2.0
//
// Rows of experts, filled and divided at random, against the whole: where the
// division of counted rows moves between ranks, each rank gets the filled rows
// of its part, and models with experts have on any mesh the loss and the
// gradients of their unpartitioned run.
#include "ir/rota/experts/Experts.h"
#include "test/RandomCases.h"
#include "test/interpreter/MeshModelRun.h"
#include "test/passes/equivalence/Passes.h"
#include "test/passes/equivalence/RandomExperts.h"
#include "test/passes/equivalence/TestModels.h"

#include "llvm/Support/FormatVariadic.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using mlir::func::FuncOp;
using mlir::rota::Model;
using mlir::rota::ShardingAttr;

namespace {

int64_t countRagged(TestModule &module) {
  int64_t count = 0;
  module.get().walk([&](mlir::rota::RaggedAllToAllOp) { ++count; });
  return count;
}

/// The result of `random` on all ranks, joined; `received` are the counts that
/// the ranks expect.
llvm::FailureOr<Tensor> runReshard(TestModule &module,
                                   const RandomReshard &random,
                                   const Tensor &received) {
  FuncOp function = module.function("f");
  auto mesh = mlir::rota::meshOf(module.get());
  std::vector<Parts> inputs =
      cutArguments(function, {random.rows, random.counts, received}, mesh);
  ShardingAttr to = shardingOfResult(function, 0);
  if (failed(runPasses(module, "partition,merge-collectives,"
                               "verify-partitioned")))
    return llvm::failure();
  auto results = runOnMesh(module.function("f"), inputs);
  if (failed(results))
    return llvm::failure();
  return join(module.get().getLoc(), results->front(), random.rows.shape, to,
              mesh);
}

/// Why the ranks have other rows than the whole; empty when they do not. Rows
/// behind the filled ones are the operand's or zero.
std::string faultOf(const Tensor &actual, const RandomReshard &random) {
  const Tensor &rows = random.rows;
  for (int64_t i = 0; i < rows.size(); ++i) {
    int64_t row = i / rows.dim(2) % rows.dim(1);
    int64_t sequence = i / rows.dim(2) / rows.dim(1);
    bool isFilled = random.isFilled(sequence, row);
    if (actual[i] != rows[i] && (isFilled || actual[i] != 0))
      return llvm::formatv("expected {0} in row {1} of sequence {2}, got {3}",
                           rows[i], row, sequence, actual[i])
          .str();
  }
  return "";
}

TEST(RandomRows, RanksGetTheFilledRowsOfTheirParts) {
  const uint64_t cases = rota::randomCases(150);
  uint64_t ragged = 0;
  for (uint64_t seed = 0; seed < cases; ++seed) {
    RandomReshard random(seed);
    TestModule module(random.text());
    ASSERT_TRUE(bool(module)) << module.takeDiagnostics() << random.text();
    auto actual = runReshard(module, random, random.counts);
    ASSERT_TRUE(succeeded(actual)) << module.takeDiagnostics() << random.text();
    EXPECT_EQ(faultOf(*actual, random), "") << "seed " << seed << "\n"
                                            << random.text();
    ragged += countRagged(module) > 0;
  }
  // Otherwise few rows travelled by their counts.
  EXPECT_GT(ragged, cases / 4);
}

/// A rank that expects no rows loses those that come.
TEST(RandomRows, RowsThatOneSideDoesNotCountAreSeen) {
  uint64_t lost = 0;
  const uint64_t cases = rota::randomCases(60);
  for (uint64_t seed = 0; seed < cases; ++seed) {
    RandomReshard random(seed);
    TestModule module(random.text());
    ASSERT_TRUE(bool(module));
    auto actual = runReshard(module, random, Tensor(random.counts.shape));
    ASSERT_TRUE(succeeded(actual)) << module.takeDiagnostics();
    lost += countRagged(module) > 0 && !faultOf(*actual, random).empty();
  }
  EXPECT_GT(lost, cases / 8);
}

/// Why the model computes something else on its mesh; empty when it does not.
/// Adds the ragged all-to-alls of its functions to `ragged`.
std::string faultOf(uint64_t seed, const RandomExperts &random,
                    int64_t &ragged) {
  const char *policies[] = {"none", "full", "minimal",
                            "moe_mlpwi_0=device,moe_mlpwo=device"};
  TestModule module(random.text());
  if (!module)
    return "does not parse: " + module.takeDiagnostics();
  if (failed(runPasses(module, std::string("differentiate{remat=") +
                                   policies[seed % 4] +
                                   (seed % 3 ? "}" : " split=true}"))))
    return "does not differentiate: " + module.takeDiagnostics();
  auto whole = Model::get(module.get());
  if (failed(whole))
    return "is no model: " + module.takeDiagnostics();
  Tensors parameters = randomParameters(*whole, seed);
  random.setBiases(parameters);
  auto microbatches = randomMicrobatches(*whole, /*vocabulary=*/0, 2, seed + 1);
  auto expected = differentiate(*whole, parameters, microbatches);
  if (failed(expected))
    return "does not run: " + module.takeDiagnostics();
  if (failed(runPasses(module, "shard{mesh=" + random.mesh() + "}")))
    return "is refused: " + module.takeDiagnostics();
  ragged += countRagged(module);
  auto partitioned = Model::get(module.get());
  if (failed(partitioned))
    return "is no model: " + module.takeDiagnostics();
  auto step = differentiateOnMesh(*partitioned, parameters, microbatches);
  if (failed(step))
    return "does not run on the mesh: " + module.takeDiagnostics();
  double error = stepError(*step, *expected);
  return error < 1e-10 ? std::string()
                       : llvm::formatv("has relative error {0:e}", error).str();
}

TEST(RandomRows, ModelsWithExpertsKeepLossAndGradients) {
  const uint64_t models = rota::randomCases(40);
  uint64_t travelling = 0;
  for (uint64_t seed = 0; seed < models; ++seed) {
    RandomExperts random(seed);
    int64_t ragged = 0;
    EXPECT_EQ(faultOf(seed, random, ragged), "")
        << "seed " << seed << ", mesh " << random.mesh() << "\n"
        << random.text();
    travelling += ragged > 0;
  }
  EXPECT_GT(travelling, models / 4);
}

} // namespace
