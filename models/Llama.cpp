// SPDX-License-Identifier: Apache-2.0
//
// The Llama family (Touvron et al. 2023; Dubey et al. 2024) in rota IR. Weights
// have the names and the [out, in] layout of model hubs. Shapes: Decoder.h.
#include "models/Decoder.h"
#include "models/UnsupportedKeys.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

class LlamaBuilder : public DecoderBuilder {
public:
  using DecoderBuilder::DecoderBuilder;

  void build() {
    declareEnds();
    beginLayers("model.layers",
                SmallVector<StringRef>(config.layers, "decoder"));
    beginKind("decoder");
    declareLayer();
    buildForward();
    endLayers();
    buildEmbed();
    buildLoss();
  }

private:
  void declareLayer() {
    Attribute init = normal(config.initializerRange);
    int64_t query = config.heads * config.headSize;
    int64_t key = config.keyHeads * config.headSize;
    int64_t embed = config.embed;
    int64_t inner = config.feedForward;
    param("input_layernorm.weight", {embed}, {"norm"}, constant(1.0));
    param("self_attn.q_proj.weight", {query, embed}, {"heads", "embed"}, init);
    param("self_attn.k_proj.weight", {key, embed}, {"kv_heads", "embed"}, init);
    param("self_attn.v_proj.weight", {key, embed}, {"kv_heads", "embed"}, init);
    param("self_attn.o_proj.weight", {embed, query}, {"embed", "heads"}, init);
    param("post_attention_layernorm.weight", {embed}, {"norm"}, constant(1.0));
    param("mlp.gate_proj.weight", {inner, embed}, {"mlp", "embed"}, init);
    param("mlp.up_proj.weight", {inner, embed}, {"mlp", "embed"}, init);
    param("mlp.down_proj.weight", {embed, inner}, {"embed", "mlp"}, init);
  }

  /// Self-attention of the normed activation, after the output projection.
  Value attention(Value x) {
    Value table = rotaryTable();
    Value query = projectHeads(x, "self_attn.q_proj.weight", config.heads);
    Value key = projectHeads(x, "self_attn.k_proj.weight", config.keyHeads);
    Value value = projectHeads(x, "self_attn.v_proj.weight", config.keyHeads);
    // The names of query and key stand after the rotation: a residual there
    // saves the projection and the rotation, and the derivative of attention
    // reads it.
    query = named("query_proj", rotate(query, table));
    key = named("key_proj", rotate(key, table));
    value = named("value_proj", value);
    Value context = named("context", attend(query, key, value));
    int64_t width = config.heads * config.headSize;
    Value flat = ReshapeOp::create(*this, activation({width}), context);
    return named("out_proj",
                 project(flat, "self_attn.o_proj.weight", config.embed, width));
  }

  void buildForward() {
    RankedTensorType type = activation({config.embed});
    Value x = beginFunction(ModelPart::Layer, {{Role::InputActivation, type},
                                               {Role::OutputActivation, type}})
                  .one(Role::InputActivation);
    x = named("decoder_layer_input", x);
    Value attended = attention(norm(x, "input_layernorm.weight"));
    x = named("attention_out", arith::AddFOp::create(*this, x, attended));
    Value widened = gatedFeedForward(
        norm(x, "post_attention_layernorm.weight"), "mlp.gate_proj.weight",
        "mlp.up_proj.weight", "mlp.down_proj.weight");
    finish(
        {{Role::OutputActivation, arith::AddFOp::create(*this, x, widened)}});
  }
};

} // namespace

LogicalResult mlir::rota::buildLlama(Config &config,
                                     const Microbatch &microbatch,
                                     ModuleOp module) {
  auto llama = DecoderConfig::read(config, microbatch);
  // silu and swish are two names of one function.
  expectName(config, "hidden_act", {"silu", "swish"}, "activations");
  expectFullAttention(config);
  expectArchitecture(config, {"LlamaForCausalLM", "LlamaModel"});
  refuseUnsupportedKeys(config);
  if (config.failed())
    return failure();
  LlamaBuilder(llama, module, microbatch).build();
  return success();
}
