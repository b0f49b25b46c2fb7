// SPDX-License-Identifier: Apache-2.0
//
// OLMo 2 (Walsh et al. 2024): RMS norms of the outputs of attention and
// feed-forward instead of their inputs, and of the whole query and key before
// they are split into heads.
#include "models/Decoder.h"
#include "models/Family.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

class Olmo2Builder : public DecoderBuilder {
public:
  using DecoderBuilder::DecoderBuilder;

private:
  void declareLayer() override {
    declareAttention();
    declareHeadsNorm("self_attn.q_norm.weight", config.heads, "heads");
    declareHeadsNorm("self_attn.k_norm.weight", config.keyHeads, "kv_heads");
    declareNorm("post_attention_layernorm.weight", config.embed);
    declareFeedForward();
    declareNorm("post_feedforward_layernorm.weight", config.embed);
  }

  /// A norm over all heads has an element of its gain for each of theirs.
  void declareHeadsNorm(StringRef gain, int64_t heads, StringRef axis) {
    param(gain, {heads * config.headSize}, {axis}, constant(1.0));
  }

  Value projectHeads(Value x, StringRef name, int64_t heads) override {
    Value flat = projectFlat(x, name, heads);
    if (name == "self_attn.q_proj")
      flat = norm(flat, "self_attn.q_norm.weight");
    if (name == "self_attn.k_proj")
      flat = norm(flat, "self_attn.k_norm.weight");
    return splitHeads(flat, heads);
  }

  Value buildLayer(Value x) override {
    Value attended = norm(attention(x), "post_attention_layernorm.weight");
    x = named("attention_out", arith::AddFOp::create(*this, x, attended));
    Value widened = norm(feedForward(x), "post_feedforward_layernorm.weight");
    return arith::AddFOp::create(*this, x, widened);
  }
};

} // namespace

static std::unique_ptr<ModelBuilder>
readOlmo2(Config &config, const Microbatch &microbatch, ModuleOp module) {
  DecoderDefaults defaults;
  defaults.normEpsilon = 1e-5;
  defaults.attentionBias = false;
  auto olmo = DecoderConfig::read(config, microbatch, defaults);
  return std::make_unique<Olmo2Builder>(olmo, module, microbatch);
}

const Family mlir::rota::olmo2Family = {
    .modelType = "olmo2",
    .description = "RMS norms of the outputs of attention and feed-forward, "
                   "and of the whole query and key",
    .languageModel = "Olmo2ForCausalLM",
    .bareModel = "Olmo2Model",
    .read = readOlmo2};
