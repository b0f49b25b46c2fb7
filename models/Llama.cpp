// SPDX-License-Identifier: Apache-2.0
//
// The Llama family (Touvron et al. 2023; Dubey et al. 2024) in rota IR. Weights
// have the names and the [out, in] layout of model hubs.
//
// Shapes: B sequences of S tokens, E embed, H heads of D, K key-value heads, F
// feed-forward, V vocabulary.
#include "models/LlamaConfig.h"
#include "models/ModelBuilder.h"

#include <cmath>

using namespace mlir;
using namespace mlir::rota;

namespace {

class LlamaBuilder : public ModelBuilder {
public:
  LlamaBuilder(const LlamaConfig &config, ModuleOp module,
               const Microbatch &microbatch)
      : ModelBuilder(module, microbatch), config(config) {}

  void build() {
    declareGlobals();
    beginLayers("model.layers", config.layers, "decoder");
    declareLayer();
    buildForward();
    endLayers();
    buildEmbed();
    buildLoss();
  }

private:
  void declareGlobals() {
    Attribute init = normal(config.initializerRange);
    param("model.embed_tokens.weight", {config.vocabulary, config.embed},
          {"vocab", "embed"}, init);
    param("model.norm.weight", {config.embed}, {"norm"}, constant(1.0));
    if (!config.tied)
      param("lm_head.weight", {config.vocabulary, config.embed},
            {"vocab", "embed"}, init);
  }

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

  /// RMS norm of `x` [B, S, E] with the gain of that name, read in f32.
  Value norm(Value x, StringRef gain) {
    return RMSNormOp::create(*this, x.getType(), x,
                             readF32(gain, {config.embed}),
                             getF64FloatAttr(config.normEpsilon));
  }

  /// A projection of `x` split into heads: [B, S, heads, D].
  Value projectHeads(Value x, StringRef weight, int64_t heads) {
    Value flat = project(x, weight, heads * config.headSize, config.embed);
    return ReshapeOp::create(*this, activation({heads, config.headSize}), flat);
  }

  /// Self-attention of the normed activation, after the output projection.
  Value attention(Value x) {
    auto tableType = tensor({microbatch.sequenceLength, config.headSize / 2, 2},
                            getF32Type());
    Value table = RotaryTableOp::create(
        *this, tableType, getDenseF64ArrayAttr(rotaryFrequencies(config)),
        getF64FloatAttr(1.0));
    // The names of query and key stand after the rotation: a residual there
    // saves the projection and the rotation, and is what attention's
    // derivative reads.
    auto rotate = [&](Value value) -> Value {
      return RopeOp::create(*this, value.getType(), value, table,
                            /*inverse=*/UnitAttr());
    };
    Value query = projectHeads(x, "self_attn.q_proj.weight", config.heads);
    Value key = projectHeads(x, "self_attn.k_proj.weight", config.keyHeads);
    Value value = projectHeads(x, "self_attn.v_proj.weight", config.keyHeads);
    query = named("query_proj", rotate(query));
    key = named("key_proj", rotate(key));
    value = named("value_proj", value);
    auto logsumexp =
        tensor({microbatch.sequences, config.heads, microbatch.sequenceLength},
               getF32Type());
    auto attention = AttentionOp::create(
        *this, query.getType(), logsumexp, query, key, value,
        getF64FloatAttr(1.0 / std::sqrt(double(config.headSize))));
    Value context = named("context", attention.getOutput());
    int64_t width = config.heads * config.headSize;
    Value flat = ReshapeOp::create(*this, activation({width}), context);
    return named("out_proj",
                 project(flat, "self_attn.o_proj.weight", config.embed, width));
  }

  Value feedForward(Value x) {
    int64_t inner = config.feedForward;
    Value gate = named("mlpwi_0",
                       project(x, "mlp.gate_proj.weight", inner, config.embed));
    Value up =
        named("mlpwi_1", project(x, "mlp.up_proj.weight", inner, config.embed));
    Value gated = SwiGLUOp::create(*this, gate.getType(), gate, up);
    return named("mlpwo",
                 project(gated, "mlp.down_proj.weight", config.embed, inner));
  }

  void buildForward() {
    RankedTensorType type = activation({config.embed});
    Value x = beginFunction(ModelPart::Layer, {{Role::InputActivation, type},
                                               {Role::OutputActivation, type}})
                  .one(Role::InputActivation);
    x = named("decoder_layer_input", x);
    Value attended = attention(norm(x, "input_layernorm.weight"));
    x = named("attention_out", arith::AddFOp::create(*this, x, attended));
    Value widened = feedForward(norm(x, "post_attention_layernorm.weight"));
    finish(
        {{Role::OutputActivation, arith::AddFOp::create(*this, x, widened)}});
  }

  RankedTensorType tokensType() {
    return tensor({microbatch.sequences, microbatch.sequenceLength},
                  getI32Type());
  }

  void buildEmbed() {
    RankedTensorType type = activation({config.embed});
    Value tokens =
        beginFunction(ModelPart::Embed, {{Role::Tokens, tokensType()},
                                         {Role::OutputActivation, type}})
            .one(Role::Tokens);
    Value table =
        read("model.embed_tokens.weight", {config.vocabulary, config.embed});
    finish({{Role::OutputActivation,
             EmbeddingOp::create(*this, type, tokens, table)}});
  }

  void buildLoss() {
    auto scalar = tensor({}, getF32Type());
    auto arguments = beginFunction(
        ModelPart::Loss, {{Role::InputActivation, activation({config.embed})},
                          {Role::Targets, tokensType()},
                          {Role::LossSum, scalar},
                          {Role::LossWeight, scalar}});
    Value normed =
        norm(arguments.one(Role::InputActivation), "model.norm.weight");
    StringRef head =
        config.tied ? "model.embed_tokens.weight" : "lm_head.weight";
    Value logits =
        named("logits", project(normed, head, config.vocabulary, config.embed));
    auto logsumexp =
        tensor({microbatch.sequences, microbatch.sequenceLength}, getF32Type());
    auto loss = CrossEntropyOp::create(*this, scalar, scalar, logsumexp, logits,
                                       arguments.one(Role::Targets));
    finish(
        {{Role::LossSum, loss.getSum()}, {Role::LossWeight, loss.getWeight()}});
  }

  const LlamaConfig &config;
};

} // namespace

/// Sizes whose products do not fit in 64 bits of bytes.
static LogicalResult checkSizes(Config &config, const LlamaConfig &llama,
                                const Microbatch &microbatch) {
  int64_t query = llama.heads * llama.headSize;
  int64_t rows = microbatch.sequences * microbatch.sequenceLength;
  int64_t widest =
      std::max({llama.vocabulary, llama.embed, llama.feedForward, query});
  if (failed(checkElements(config, "vocab_size", "vocab_size x hidden_size",
                           {llama.vocabulary, llama.embed})) ||
      failed(checkElements(config, "num_attention_heads",
                           "num_attention_heads x head_dim x hidden_size",
                           {llama.heads, llama.headSize, llama.embed})) ||
      failed(checkElements(config, "intermediate_size",
                           "intermediate_size x hidden_size",
                           {llama.feedForward, llama.embed})) ||
      failed(
          checkElements(config, "hidden_size",
                        "sequences x sequence length x the widest activation",
                        {rows, widest})))
    return failure();
  // Each product is below 2^56 now; the sum of those of a layer fits.
  int64_t layer = llama.embed * (2 * query + 2 + 3 * llama.feedForward) +
                  2 * llama.embed * llama.keyHeads * llama.headSize;
  return checkElements(config, "num_hidden_layers",
                       "num_hidden_layers x the parameters of a layer",
                       {llama.layers, layer});
}

LogicalResult mlir::rota::buildLlama(Config &config,
                                     const Microbatch &microbatch,
                                     ModuleOp module) {
  auto llama = LlamaConfig::read(config);
  if (failed(llama) || failed(checkSizes(config, *llama, microbatch)))
    return failure();
  LlamaBuilder(*llama, module, microbatch).build();
  return success();
}
