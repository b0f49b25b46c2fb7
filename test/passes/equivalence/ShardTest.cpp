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

/// Real numbers in, and a squared error.
constexpr const char *squaredError = R"(
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
)";

/// Each token chooses 2 of 4 experts of width 8, with biases. Blocks hold what
/// may be chosen: a token chooses an expert once.
constexpr const char *experts = R"(
rota.stack @layers layers = 2 pattern [@experts] {
  rota.layer @experts {
    rota.param @router : tensor<4x8xf64> axes ["router", "embed"] init #rota.normal<mean = 0.0, deviation = 0.1>
    rota.param @up : tensor<4x8x8xf64> axes ["experts", "mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.1>
    rota.param @up_bias : tensor<4x8xf64> axes ["experts", "mlp"] init #rota.normal<mean = 0.0, deviation = 0.1>
    rota.param @down : tensor<4x8x8xf64> axes ["experts", "mlp", "embed"] init #rota.normal<mean = 0.0, deviation = 0.1>
    rota.param @down_bias : tensor<4x8xf64> axes ["experts", "embed"] init #rota.normal<mean = 0.0, deviation = 0.1>
    func.func @forward(%x: tensor<4x8x8xf64>) -> tensor<4x8x8xf64> {
      %wr = rota.read @router : tensor<4x8xf64>
      %z = rota.einsum "bsk,nk->bsn" %x, %wr : (tensor<4x8x8xf64>, tensor<4x8xf64>) -> tensor<4x8x4xf64>
      %w, %e = rota.route %z normalize scaling = 1.5 : (tensor<4x8x4xf64>) -> (tensor<4x8x2xf64>, tensor<4x8x2xi32>)
      %p, %c = rota.expert_places %e rows = 32 blocks = 4 : tensor<4x8x2xi32> -> tensor<4x4xi32>
      %r = rota.dispatch %x, %p : (tensor<4x8x8xf64>, tensor<4x8x2xi32>) -> tensor<4x32x8xf64>
      %wu = rota.read @up : tensor<4x8x8xf64>
      %u0 = rota.grouped_product %r, %wu, %c transposed blocks = 4 : (tensor<4x32x8xf64>, tensor<4x8x8xf64>, tensor<4x4xi32>) -> tensor<4x32x8xf64>
      %bu = rota.read @up_bias : tensor<4x8xf64>
      %u1 = rota.grouped_bias %u0, %bu, %c blocks = 4 : tensor<4x32x8xf64>, tensor<4x8xf64>, tensor<4x4xi32>
      %u = rota.name "moe_mlpwi_0" %u1 : tensor<4x32x8xf64>
      %g = rota.activation silu %u : tensor<4x32x8xf64>
      %wd = rota.read @down : tensor<4x8x8xf64>
      %d0 = rota.grouped_product %g, %wd, %c blocks = 4 : (tensor<4x32x8xf64>, tensor<4x8x8xf64>, tensor<4x4xi32>) -> tensor<4x32x8xf64>
      %bd = rota.read @down_bias : tensor<4x8xf64>
      %d1 = rota.grouped_bias %d0, %bd, %c blocks = 4 : tensor<4x32x8xf64>, tensor<4x8xf64>, tensor<4x4xi32>
      %d = rota.name "moe_mlpwo" %d1 : tensor<4x32x8xf64>
      %o = rota.combine %d, %p weights %w : (tensor<4x32x8xf64>, tensor<4x8x2xi32>, tensor<4x8x2xf64>) -> tensor<4x8x8xf64>
      %y = arith.addf %x, %o : tensor<4x8x8xf64>
      return %y : tensor<4x8x8xf64>
    }
  }
}
)";

/// `experts` whose rows are counted, so that only filled ones travel.
std::string countedExperts() {
  std::string text = experts;
  auto replace = [&](llvm::StringRef before, llvm::StringRef after) {
    size_t place = text.find(before);
    ASSERT_NE(place, std::string::npos);
    text.replace(place, before.size(), after);
  };
  replace("rota.dispatch %x, %p : (tensor<4x8x8xf64>, tensor<4x8x2xi32>)",
          "rota.dispatch %x, %p counts %c blocks = 4 fill = 0.5 : "
          "(tensor<4x8x8xf64>, tensor<4x8x2xi32>, tensor<4x4xi32>)");
  replace("weights %w : (tensor<4x32x8xf64>, tensor<4x8x2xi32>, "
          "tensor<4x8x2xf64>)",
          "weights %w counts %c blocks = 4 fill = 0.5 : (tensor<4x32x8xf64>, "
          "tensor<4x8x2xi32>, tensor<4x8x2xf64>, tensor<4x4xi32>)");
  return text;
}

/// `experts` with one block, whose rows backward makes again.
std::string undividedExperts() {
  std::string text = experts;
  constexpr llvm::StringLiteral blocks = " blocks = 4";
  for (size_t place; (place = text.find(blocks)) != std::string::npos;)
    text.erase(place, blocks.size());
  return text;
}

struct Case {
  const char *name;
  /// "simple", "experts", "counted", "undivided", "llama", "forms",
  /// "documents", "norms", "centered" or "capped".
  const char *model;
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
    {"llama_tensor_pieces", "llama", "mesh=tensor=2 tensor-exchange=ring"},
    {"llama_sequence_pieces", "llama", "mesh=sequence=4 tensor-exchange=ring"},
    {"llama_mixed_pieces", "llama",
     "mesh=data=2,sequence=2,tensor=2 tensor-exchange=ring"},
    {"llama_context", "llama", "mesh=context=2"},
    {"llama_two_key_heads_over_four", "llama", "mesh=tensor=4"},
    {"llama_sequence_tensor", "llama", "mesh=sequence=2,tensor=2"},
    {"llama_data_tensor", "llama", "mesh=data=2,tensor=2"},
    {"llama_stages", "llama", "mesh=data=2,stage=2,tensor=2"},
    {"llama_mixed", "llama",
     "mesh=data=2,fsdp=2,context=2,tensor=2 shard-optimizer=true"},
    {"llama_context_tensor", "llama", "mesh=data=2,context=2,tensor=4"},
    {"llama_ring", "llama", "mesh=context=2 exchange=ring"},
    {"llama_ring_of_four", "llama", "mesh=context=4 exchange=ring"},
    {"llama_ring_sequence", "llama", "mesh=context=2,sequence=2 exchange=ring"},
    {"llama_ring_mixed", "llama",
     "mesh=data=2,fsdp=2,context=2,tensor=2 shard-optimizer=true "
     "exchange=ring"},
    {"llama_balanced", "llama", "mesh=context=2 exchange=balanced-ring"},
    {"llama_balanced_of_four", "llama",
     "mesh=context=4 exchange=balanced-ring"},
    {"llama_balanced_mixed", "llama",
     "mesh=data=2,fsdp=2,context=2,tensor=2 shard-optimizer=true "
     "exchange=balanced-ring"},
    {"forms_context", "forms", "mesh=context=2"},
    {"forms_ring", "forms", "mesh=context=2 exchange=ring"},
    {"forms_ring_of_four", "forms", "mesh=context=4 exchange=ring"},
    {"forms_ring_tensor", "forms", "mesh=context=4,tensor=2 exchange=ring"},
    {"documents_sequence", "documents", "mesh=fsdp=2,sequence=2"},
    {"documents_context", "documents", "mesh=data=2,context=2"},
    {"documents_ring", "documents", "mesh=data=2,context=4 exchange=ring"},
    {"documents_mixed", "documents",
     "mesh=data=2,fsdp=2,context=2,tensor=2 shard-optimizer=true "
     "exchange=balanced-ring"},
    {"norms_tensor", "norms", "mesh=tensor=2"},
    {"norms_two_key_heads_over_four", "norms", "mesh=tensor=4"},
    {"norms_sequence", "norms", "mesh=sequence=4"},
    {"norms_ring_mixed", "norms",
     "mesh=fsdp=2,context=2,sequence=2,tensor=2 exchange=ring"},
    {"centered_tensor", "centered", "mesh=tensor=4"},
    {"centered_sequence_tensor", "centered", "mesh=sequence=2,tensor=2"},
    {"capped_padded", "capped", "mesh=tensor=3 rules=heads=,kv_heads=,mlp="},
    {"experts_data", "experts", "mesh=data=4"},
    {"experts_fsdp", "experts", "mesh=fsdp=2"},
    {"experts_tensor", "experts", "mesh=tensor=2"},
    {"experts_sequence", "experts", "mesh=sequence=2"},
    {"experts_sequence_expert", "experts", "mesh=expert=2,sequence=2"},
    {"experts_expert", "experts", "mesh=expert=2"},
    {"experts_one_on_each_rank", "experts", "mesh=expert=4"},
    {"experts_mixed", "experts",
     "mesh=data=2,expert=2,tensor=2 shard-optimizer=true"},
    {"experts_fsdp_expert", "experts", "mesh=fsdp=2,expert=2"},
    {"counted_data", "counted", "mesh=data=4"},
    {"counted_tensor", "counted", "mesh=tensor=2"},
    {"counted_sequence", "counted", "mesh=sequence=4"},
    {"counted_expert", "counted", "mesh=expert=2"},
    {"counted_one_on_each_rank", "counted", "mesh=expert=4"},
    {"counted_mixed", "counted",
     "mesh=data=2,expert=2,tensor=2 shard-optimizer=true"},
    {"counted_fsdp_expert", "counted", "mesh=fsdp=2,expert=2"},
    {"undivided_tensor", "undivided", "mesh=tensor=2"},
    {"undivided_sequence", "undivided", "mesh=sequence=2"}};

bool hasForms(const Case &test) {
  return test.model == llvm::StringRef("forms");
}
bool hasDocuments(const Case &test) {
  return test.model == llvm::StringRef("documents");
}
bool hasNorms(const Case &test) {
  return test.model == llvm::StringRef("norms") ||
         test.model == llvm::StringRef("centered");
}
bool hasCap(const Case &test) {
  return test.model == llvm::StringRef("capped");
}
bool isLlama(const Case &test) {
  return test.model == llvm::StringRef("llama") || hasForms(test) ||
         hasDocuments(test) || hasNorms(test) || hasCap(test);
}

/// The Llama decoder with logits below 0.5.
std::string withCap(std::string text) {
  constexpr llvm::StringLiteral line = "  %l = rota.name \"logits\" %l0 : ";
  size_t place = text.find(line);
  if (place == std::string::npos)
    return text;
  size_t end = text.find('\n', place);
  std::string type =
      text.substr(place + line.size(), end - place - line.size());
  text.replace(place, line.size(),
               "  %cap = arith.constant dense<0.5> : " + type +
                   "\n  %share = arith.divf %l0, %cap : " + type +
                   "\n  %bent = math.tanh %share : " + type +
                   "\n  %below = arith.mulf %bent, %cap : " + type +
                   "\n  %l = rota.name \"logits\" %below : ");
  return text;
}

/// The Llama decoder with norms of its whole query and key.
std::string withNorms(std::string text, const std::string &form) {
  auto insert = [&](std::string_view before, const std::string &more) {
    size_t place = text.find(before);
    ASSERT_NE(place, std::string::npos) << before;
    text.insert(place, more);
  };
  auto normalize = [&](const std::string &letter, const std::string &axis,
                       const std::string &width) {
    std::string gain = "@self_attn." + letter + "_norm.weight";
    insert("    rota.param @input_layernorm",
           "    rota.param " + gain + " : tensor<" + width + "x$W> axes [\"" +
               axis + "\"] init #rota.constant<value = 1.0>\n");
    std::string type = "tensor<4x8x" + width + "x$T>";
    std::string name = "      %" + letter + "1 = rota.name";
    insert(name, "      %" + letter + "_gain = rota.read " + gain +
                     " : tensor<" + width + "x$T>\n      %" + letter +
                     "_norm = rota.rms_norm " + form + " %" + letter + "0, %" +
                     letter + "_gain epsilon = 0.0078125 : " + type +
                     ", tensor<" + width + "x$T>\n");
    size_t use = text.find("%" + letter + "0 :", text.find(name));
    ASSERT_NE(use, std::string::npos);
    text.replace(use, 3, "%" + letter + "_norm");
  };
  normalize("q", "heads", "8");
  normalize("k", "kv_heads", "4");
  return text;
}

/// The Llama decoder with sinks, a soft cap and a window of 4: with blocks of
/// two positions, more than one block behind.
std::string withForms(std::string text) {
  auto replace = [&](std::string_view from, std::string_view to) {
    size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    text.replace(place, from.size(), to);
  };
  replace("    rota.param @input_layernorm",
          "    rota.param @sinks : tensor<4x$W> axes [\"heads\"] init "
          "#rota.normal<mean = 0.0, deviation = 1.0>\n"
          "    rota.param @input_layernorm");
  replace("      %a, %lse = rota.attention %q, %k, %v scale = 0.5 :",
          "      %s = rota.read @sinks : tensor<4x$W>\n"
          "      %a, %lse = rota.attention %q, %k, %v sinks %s scale = 0.5 "
          "window = 4 soft_cap = 2.0 :");
  replace("tensor<4x8x2x2x$T>) -> (tensor<4x8x4x2x$T>, tensor<4x4x8x$W>)",
          "tensor<4x8x2x2x$T>, tensor<4x$W>) -> (tensor<4x8x4x2x$T>, "
          "tensor<4x4x8x$W>)");
  return text;
}

/// The Llama decoder with documents that end with the token 3, one of 16.
std::string withDocuments(std::string text) {
  auto replaceAll = [&](std::string_view from, std::string_view to) {
    size_t place = text.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    for (; place != std::string::npos;
         place = text.find(from, place + to.size()))
      text.replace(place, from.size(), to);
  };
  replaceAll("      %table = rota.rotary_table",
             "      %p = rota.document_positions end = 3 : tensor<4x8xi32>\n"
             "      %table = rota.rotary_table");
  replaceAll("2, %table :", "2, %table at %p :");
  replaceAll("tensor<8x1x2x$W>\n      %wk", "tensor<8x1x2x$W>, "
                                            "tensor<4x8xi32>\n      %wk");
  replaceAll("tensor<8x1x2x$W>\n      %wv", "tensor<8x1x2x$W>, "
                                            "tensor<4x8xi32>\n      %wv");
  replaceAll("%q, %k, %v scale", "%q, %k, %v documents %p scale");
  replaceAll("tensor<4x8x2x2x$T>) -> (tensor<4x8x4x2x$T>",
             "tensor<4x8x2x2x$T>, tensor<4x8xi32>) -> (tensor<4x8x4x2x$T>");
  return text;
}

std::string textOf(const Case &test) {
  if (hasNorms(test)) {
    bool centered = test.model == llvm::StringRef("centered");
    return withElements(withNorms(wideLlama().text, centered ? "centered" : ""),
                        "f64");
  }
  if (hasForms(test))
    return withElements(withForms(wideLlama().text), "f64");
  if (hasCap(test))
    return withElements(withCap(wideLlama().text), "f64");
  if (hasDocuments(test))
    return withElements(withDocuments(wideLlama().text), "f64");
  if (isLlama(test))
    return withElements(wideLlama().text, "f64");
  llvm::StringRef model = test.model;
  std::string text = model == "simple"      ? simple
                     : model == "counted"   ? countedExperts()
                     : model == "undivided" ? undividedExperts()
                                            : experts;
  return text + squaredError;
}

class Shard : public testing::TestWithParam<Case> {};

TEST_P(Shard, KeepsLossAndGradientsUnderEveryPolicy) {
  const Case &test = GetParam();
  int64_t vocabulary = isLlama(test) ? wideLlama().vocabulary : 0;
  for (const char *policy :
       {"none", "full", "minimal", "save_qkv_proj", "minimal_with_context",
        "moe_mlpwi_0=device,moe_mlpwo=device"})
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
