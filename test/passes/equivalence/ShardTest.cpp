// SPDX-License-Identifier: Apache-2.0
//
// Whole models, partitioned over meshes, have the loss and the gradients of
// their unpartitioned run, under every remat policy.
#include "test/interpreter/MeshModelRun.h"
#include "test/passes/equivalence/Passes.h"
#include "test/passes/equivalence/TestModels.h"

#include <gtest/gtest.h>

using namespace rota::interpreter;
using mlir::rota::Model;

namespace {

constexpr double tolerance = 1e-10;

/// y = x * W, width 8.
constexpr const char *simple = R"(
rota.stack @layers layers = 3 pattern [@linear] {
  rota.layer @linear {
    rota.param @weight : tensor<8x8xf64> axes ["in", "out"] init #rota.normal<mean = 0.0, deviation = 0.1>
    func.func @forward(%x: tensor<4x8x8xf64>) -> tensor<4x8x8xf64> {
      %w = rota.read @weight : tensor<8x8xf64>
      %y = rota.einsum "bsk,kn->bsn" %x, %w : (tensor<4x8x8xf64>, tensor<8x8xf64>) -> tensor<4x8x8xf64>
      return %y : tensor<4x8x8xf64>
    }
  }
}
func.func @embed(%x: tensor<4x8x8xf64>) -> tensor<4x8x8xf64> {
  return %x : tensor<4x8x8xf64>
}
func.func @loss(%y: tensor<4x8x8xf64>, %target: tensor<4x8x8xf64>) -> (tensor<f64>, tensor<f64>) {
  %difference = arith.subf %y, %target : tensor<4x8x8xf64>
  %square = rota.einsum "bsk,bsk->" %difference, %difference : (tensor<4x8x8xf64>, tensor<4x8x8xf64>) -> tensor<f64>
  %one = arith.constant dense<1.0> : tensor<f64>
  return %square, %one : tensor<f64>, tensor<f64>
}
)";

struct Case {
  const char *name;
  const char *model; // "simple" or "llama"
  const char *shard; // options of the pipeline `shard`
};

constexpr Case cases[] = {
    {"simple_data", "simple", "mesh=data=4"},
    {"simple_fsdp", "simple", "mesh=fsdp=2"},
    {"simple_mixed", "simple", "mesh=data=2,fsdp=2,tensor=4 rules=in=tensor"},
    {"simple_zero1", "simple", "mesh=data=2,fsdp=2 shard-optimizer=true"},
    {"llama_data", "llama", "mesh=data=2"},
    {"llama_fsdp", "llama", "mesh=fsdp=4"},
    {"llama_tensor", "llama", "mesh=tensor=2"},
    {"llama_sequence", "llama", "mesh=sequence=2"},
    {"llama_context", "llama", "mesh=context=2"},
    {"llama_two_key_heads_over_four", "llama", "mesh=tensor=4"},
    {"llama_sequence_tensor", "llama", "mesh=sequence=2,tensor=2"},
    {"llama_data_tensor", "llama", "mesh=data=2,tensor=2"},
    {"llama_stages", "llama", "mesh=data=2,stage=2,tensor=2"},
    {"llama_mixed", "llama",
     "mesh=data=2,fsdp=2,context=2,tensor=2 shard-optimizer=true"},
    {"llama_context_tensor", "llama", "mesh=data=2,context=2,tensor=4"}};

std::string textOf(const Case &test) {
  return test.model == llvm::StringRef("simple")
             ? simple
             : withElements(wideLlama().text, "f64");
}

class Shard : public testing::TestWithParam<Case> {};

TEST_P(Shard, KeepsLossAndGradientsUnderEveryPolicy) {
  const Case &test = GetParam();
  int64_t vocabulary =
      test.model == llvm::StringRef("simple") ? 0 : wideLlama().vocabulary;
  for (const char *policy :
       {"none", "full", "minimal", "save_qkv_proj", "minimal_with_context"})
    for (const char *split : {"false", "true"}) {
      TestModule module(textOf(test));
      ASSERT_TRUE(bool(module)) << module.takeDiagnostics();
      std::string pipeline = std::string("differentiate{remat=") + policy +
                             " split=" + split + "}";
      ASSERT_TRUE(succeeded(runPasses(module, pipeline)))
          << module.takeDiagnostics();
      auto whole = Model::get(module.get());
      ASSERT_TRUE(succeeded(whole));
      Tensors parameters = randomParameters(*whole, 1);
      auto microbatches = randomMicrobatches(*whole, vocabulary, 2, 2);
      auto expected = differentiate(*whole, parameters, microbatches);
      ASSERT_TRUE(succeeded(expected)) << module.takeDiagnostics();
      ASSERT_TRUE(succeeded(
          runPasses(module, std::string("shard{") + test.shard + "}")))
          << pipeline << ": " << module.takeDiagnostics();
      auto partitioned = Model::get(module.get());
      ASSERT_TRUE(succeeded(partitioned)) << module.takeDiagnostics();
      auto step = differentiateOnMesh(*partitioned, parameters, microbatches);
      ASSERT_TRUE(succeeded(step))
          << pipeline << ": " << module.takeDiagnostics();
      EXPECT_LT(stepError(*step, *expected), tolerance) << pipeline;
    }
}

INSTANTIATE_TEST_SUITE_P(Meshes, Shard, testing::ValuesIn(cases),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
