// SPDX-License-Identifier: Apache-2.0
//
// The layer of a decoder and its parts as Llama has them (Touvron et al. 2023):
// weights have the names and the [out, in] layout of model hubs.
#include "models/Decoder.h"

using namespace mlir;
using namespace mlir::rota;

void DecoderBuilder::build() {
  declareEnds();
  if (config.prediction)
    declarePrediction();
  SmallVector<StringRef> kinds(config.layers, config.kinds.front().name);
  for (auto [name, kind] : llvm::zip(kinds, config.kindOf))
    name = config.kinds[kind].name;
  beginLayers(names.stack, kinds);
  for (const LayerKind &kind : config.kinds)
    if (llvm::is_contained(kinds, kind.name))
      buildKind(kind);
  endLayers();
  buildEmbed();
  buildLoss();
}

void DecoderBuilder::buildKind(const LayerKind &kind) {
  openKind = &kind;
  beginKind(kind.name);
  declareLayer();
  RankedTensorType type = activation({config.embed});
  Value x = beginFunction(ModelPart::Layer, {{Role::InputActivation, type},
                                             {Role::OutputActivation, type}})
                .one(Role::InputActivation);
  finish(
      {{Role::OutputActivation, buildLayer(named("decoder_layer_input", x))}});
}

void DecoderBuilder::declareNorm(StringRef gain, int64_t width) {
  param(gain, {width}, {"norm"}, constant(1.0));
}

void DecoderBuilder::declareAttention() {
  Attribute init = normal(config.initializerRange);
  int64_t query = config.heads * config.headSize;
  int64_t key = config.keyHeads * config.headSize;
  int64_t embed = config.embed;
  linear("self_attn.q_proj.weight", {query, embed}, {"heads", "embed"}, init);
  linear("self_attn.k_proj.weight", {key, embed}, {"kv_heads", "embed"}, init);
  linear("self_attn.v_proj.weight", {key, embed}, {"kv_heads", "embed"}, init);
  linear("self_attn.o_proj.weight", {embed, query}, {"embed", "heads"}, init);
  Attribute zero = constant(0.0);
  if (config.headBias) {
    param("self_attn.q_proj.bias", {query}, {"heads"}, zero);
    param("self_attn.k_proj.bias", {key}, {"kv_heads"}, zero);
    param("self_attn.v_proj.bias", {key}, {"kv_heads"}, zero);
  }
  if (config.outBias)
    param("self_attn.o_proj.bias", {embed}, {"embed"}, zero);
}

void DecoderBuilder::declareGated(StringRef prefix, int64_t inner) {
  Attribute init = normal(config.initializerRange);
  int64_t embed = config.embed;
  auto name = [&](StringRef end) { return (prefix + end).str(); };
  linear(name(".gate_proj.weight"), {inner, embed}, {"mlp", "embed"}, init);
  linear(name(".up_proj.weight"), {inner, embed}, {"mlp", "embed"}, init);
  linear(name(".down_proj.weight"), {embed, inner}, {"embed", "mlp"}, init);
  if (!config.feedForwardBias)
    return;
  Attribute zero = constant(0.0);
  param(name(".gate_proj.bias"), {inner}, {"mlp"}, zero);
  param(name(".up_proj.bias"), {inner}, {"mlp"}, zero);
  param(name(".down_proj.bias"), {embed}, {"embed"}, zero);
}

void DecoderBuilder::declareFeedForward() {
  declareGated("mlp", config.feedForward);
}

void DecoderBuilder::declareLayer() {
  declareNorm("input_layernorm.weight", config.embed);
  declareAttention();
  declareNorm("post_attention_layernorm.weight", config.embed);
  declareFeedForward();
}

Value DecoderBuilder::projectBiased(Value x, const Twine &name, int64_t out,
                                    int64_t in, bool hasBias) {
  Value product = project(x, (name + ".weight").str(), out, in);
  return hasBias ? addBias(product, (name + ".bias").str()) : product;
}

Value DecoderBuilder::projectFlat(Value x, StringRef name, int64_t heads) {
  return projectBiased(x, name, heads * config.headSize, config.embed,
                       config.headBias);
}

Value DecoderBuilder::projectHeads(Value x, StringRef name, int64_t heads) {
  return splitHeads(projectFlat(x, name, heads), heads);
}

Value DecoderBuilder::projectOut(Value context, int64_t width) {
  return projectBiased(context, "self_attn.o_proj", config.embed, width,
                       config.outBias);
}

void DecoderBuilder::declareHeadNorms() {
  declareNorm("self_attn.q_norm.weight", config.headSize);
  declareNorm("self_attn.k_norm.weight", config.headSize);
}

Value DecoderBuilder::headNorm(Value heads, StringRef name) {
  if (name == "self_attn.v_proj")
    return heads;
  return norm(heads, name == "self_attn.q_proj" ? "self_attn.q_norm.weight"
                                                : "self_attn.k_norm.weight");
}

Value DecoderBuilder::attention(Value x) {
  Value table = rotaryTable();
  Value query = projectHeads(x, "self_attn.q_proj", config.heads);
  Value key = projectHeads(x, "self_attn.k_proj", config.keyHeads);
  Value value = projectHeads(x, "self_attn.v_proj", config.keyHeads);
  // The names of query and key stand after the rotation: a residual there
  // saves the projection and the rotation, and the derivative of attention
  // reads it.
  query = named("query_proj", rotate(query, table));
  key = named("key_proj", rotate(key, table));
  value = named("value_proj", value);
  Value context = named("context", attend(query, key, value));
  int64_t width = config.heads * config.headSize;
  Value flat = ReshapeOp::create(*this, activation({width}), context);
  return named("out_proj", projectOut(flat, width));
}

Value DecoderBuilder::gated(Value x, StringRef prefix, int64_t inner) {
  int64_t embed = config.embed;
  bool hasBias = config.feedForwardBias;
  Value gates = named("mlpwi_0", projectBiased(x, prefix + ".gate_proj", inner,
                                               embed, hasBias));
  Value values = named(
      "mlpwi_1", projectBiased(x, prefix + ".up_proj", inner, embed, hasBias));
  Value active = ActivationOp::create(*this, gates.getType(), config.activation,
                                      gates, values);
  return named("mlpwo", projectBiased(active, prefix + ".down_proj", embed,
                                      inner, hasBias));
}

Value DecoderBuilder::feedForward(Value x) {
  return gated(x, "mlp", config.feedForward);
}

Value DecoderBuilder::buildLayer(Value x) {
  Value attended = attention(norm(x, "input_layernorm.weight"));
  x = named("attention_out", arith::AddFOp::create(*this, x, attended));
  Value widened = feedForward(norm(x, "post_attention_layernorm.weight"));
  return arith::AddFOp::create(*this, x, widened);
}
