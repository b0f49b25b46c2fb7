// SPDX-License-Identifier: Apache-2.0
//
// Qwen2 and 2.5 (Yang et al. 2024): Llama with biases of query, key and value.
// Qwen3 (Yang et al. 2025): Llama with RMS norms of each head's query and key,
// and its form with mixtures of experts in some or all layers.
#include "models/AttentionWindows.h"
#include "models/Decoder.h"
#include "models/Experts.h"
#include "models/UnsupportedKeys.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

class Qwen2Builder : public DecoderBuilder {
  using DecoderBuilder::DecoderBuilder;

  void declareLayer() override {
    DecoderBuilder::declareLayer();
    int64_t query = config.heads * config.headSize;
    int64_t key = config.keyHeads * config.headSize;
    param("self_attn.q_proj.bias", {query}, {"heads"}, constant(0.0));
    param("self_attn.k_proj.bias", {key}, {"kv_heads"}, constant(0.0));
    param("self_attn.v_proj.bias", {key}, {"kv_heads"}, constant(0.0));
  }

  Value projectHeads(Value x, StringRef name, int64_t heads) override {
    return biasedHeads(x, name, heads);
  }
};

class Qwen3Builder : public DecoderBuilder {
public:
  using DecoderBuilder::DecoderBuilder;

private:
  void declareLayer() override {
    DecoderBuilder::declareLayer();
    declareHeadNorms();
  }

  Value projectHeads(Value x, StringRef name, int64_t heads) override {
    return headNorm(DecoderBuilder::projectHeads(x, name, heads), name);
  }
};

class Qwen3MoeBuilder : public Qwen3Builder {
public:
  Qwen3MoeBuilder(const DecoderConfig &config, const ExpertConfig &experts,
                  ModuleOp module, const Microbatch &microbatch)
      : Qwen3Builder(config, module, microbatch), experts(*this, experts) {}

private:
  void declareFeedForward() override {
    if (kind().sparse)
      experts.declare();
    else
      Qwen3Builder::declareFeedForward();
  }
  Value feedForward(Value x) override {
    return kind().sparse ? experts.build(x) : Qwen3Builder::feedForward(x);
  }

  ExpertBlock experts;
};

} // namespace

/// The keys of both versions beyond Llama's: with `use_sliding_window` the
/// layers from `max_window_layers` on have a window.
static void readKeys(Config &config, DecoderConfig &qwen) {
  bool slides = config.flag("use_sliding_window", false);
  const nlohmann::json *full = config.find("max_window_layers");
  if (full && !full->is_number_unsigned())
    config.expected("max_window_layers", "an integer of at least 0");
  if (config.failed())
    return;
  int64_t first = full ? full->get<int64_t>() : 28;
  auto sliding = readSlidingLayers(config, qwen.layers, [&](int64_t layer) {
    return slides && layer >= first;
  });
  if (!slides && llvm::is_contained(sliding, true))
    config.expected("layer_types", "\"full_attention\" in every layer, since "
                                   "'use_sliding_window' is false");
  // Without `use_sliding_window` the window of a published file is unused.
  if (!config.find("sliding_window") && config.has("sliding_window"))
    return;
  if (slides && llvm::is_contained(sliding, true))
    setWindows(qwen, sliding, config.size("sliding_window", 4096));
}

template <typename Builder>
static LogicalResult buildQwen(Config &config, DecoderConfig qwen,
                               const Microbatch &microbatch, ModuleOp module) {
  readKeys(config, qwen);
  refuseUnsupportedKeys(config);
  if (config.failed())
    return failure();
  Builder(qwen, module, microbatch).build();
  return success();
}

LogicalResult mlir::rota::buildQwen2(Config &config,
                                     const Microbatch &microbatch,
                                     ModuleOp module) {
  auto qwen = DecoderConfig::read(config, microbatch);
  expectArchitecture(config, {"Qwen2ForCausalLM", "Qwen2Model"});
  return buildQwen<Qwen2Builder>(config, qwen, microbatch, module);
}

LogicalResult mlir::rota::buildQwen3(Config &config,
                                     const Microbatch &microbatch,
                                     ModuleOp module) {
  DecoderDefaults defaults;
  defaults.headSize = 128;
  auto qwen = DecoderConfig::read(config, microbatch, defaults);
  expectArchitecture(config, {"Qwen3ForCausalLM", "Qwen3Model"});
  return buildQwen<Qwen3Builder>(config, qwen, microbatch, module);
}

/// Reads which layers are dense: those that `mlp_only_layers` lists, and those
/// that `decoder_sparse_step` does not reach.
static void setSparseLayers(Config &config, DecoderConfig &qwen) {
  int64_t step = config.size("decoder_sparse_step", 1);
  const nlohmann::json *dense = config.find("mlp_only_layers");
  auto isLayer = [](const nlohmann::json &layer) {
    return layer.is_number_unsigned();
  };
  if (dense && (!dense->is_array() || !llvm::all_of(*dense, isLayer))) {
    config.expected("mlp_only_layers", "an array of numbers of layers");
    return;
  }
  qwen.setSparse([&](int64_t layer) {
    bool isListed = dense && llvm::is_contained(*dense, layer);
    return !isListed && (layer + 1) % step == 0;
  });
}

LogicalResult mlir::rota::buildQwen3Moe(Config &config,
                                        const Microbatch &microbatch,
                                        ModuleOp module) {
  auto qwen = DecoderConfig::read(config, microbatch);
  // Published files have a window that `use_sliding_window` switches off.
  if (config.flag("use_sliding_window", false))
    qwen.kinds.front().window = config.size("sliding_window", 4096);
  else
    config.find("sliding_window");
  config.find("max_window_layers"); // unused, as in transformers
  ExpertConfig experts{
      .embed = qwen.embed,
      .feedForward = config.size("moe_intermediate_size", 768),
      .experts = config.size("num_experts", 128),
      .choices = config.size("num_experts_per_tok", 8),
      .initializerRange = qwen.initializerRange,
      .activation = qwen.activation,
      .normalizes = config.flag("norm_topk_prob", false),
  };
  experts.readLosses(config, microbatch);
  experts.check(config, "num_experts", "num_experts_per_tok",
                "moe_intermediate_size", microbatch);
  setSparseLayers(config, qwen);
  expectFullAttention(config);
  expectArchitecture(config, {"Qwen3MoeForCausalLM", "Qwen3MoeModel"});
  refuseUnsupportedKeys(config);
  if (config.failed())
    return failure();
  Qwen3MoeBuilder(qwen, experts, module, microbatch).build();
  return success();
}
