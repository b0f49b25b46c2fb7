// SPDX-License-Identifier: Apache-2.0
//
// Qwen2 and 2.5 (Yang et al. 2024): Llama with biases of query, key and value.
// Qwen3 (Yang et al. 2025): Llama with RMS norms of each head's query and key,
// and its form with mixtures of experts in some or all layers.
#include "models/AttentionWindows.h"
#include "models/Decoder.h"
#include "models/Experts.h"
#include "models/Family.h"

using namespace mlir;
using namespace mlir::rota;

namespace {

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
static void readWindows(Config &config, DecoderConfig &qwen) {
  bool slides = config.flag("use_sliding_window", false);
  uint64_t first = 28;
  if (const nlohmann::json *full = config.find("max_window_layers")) {
    if (full->is_number_unsigned())
      first = full->get<uint64_t>();
    else
      config.expected("max_window_layers", "an integer of at least 0");
  }
  auto sliding = readSlidingLayers(config, qwen.layers, [&](int64_t layer) {
    return slides && static_cast<uint64_t>(layer) >= first;
  });
  bool isNull = config.has("sliding_window") && !config.find("sliding_window");
  bool anySlides = llvm::is_contained(sliding, true);
  if (anySlides && !slides)
    config.expected("layer_types", "\"full_attention\" in every layer, since "
                                   "'use_sliding_window' is false");
  // Without `use_sliding_window` the window of a published file is unused.
  else if (anySlides && !isNull)
    setWindows(qwen, sliding, config.size("sliding_window", 4096));
}

static std::unique_ptr<ModelBuilder>
readQwen2(Config &config, const Microbatch &microbatch, ModuleOp module) {
  DecoderDefaults defaults;
  defaults.keyHeads = 32;
  auto qwen = DecoderConfig::read(config, microbatch, defaults);
  qwen.headBias = true;
  readWindows(config, qwen);
  return std::make_unique<DecoderBuilder>(qwen, module, microbatch);
}

static constexpr NeutralKey qwen2Keys[] = {
    {"use_mrope", NeutralKey::False}, // positions of images
};

const Family mlir::rota::qwen2Family = {
    .modelType = "qwen2",
    .description = "Qwen2 and 2.5: Llama with biases of query, key and value",
    .languageModel = "Qwen2ForCausalLM",
    .bareModel = "Qwen2Model",
    .neutralKeys = qwen2Keys,
    .read = readQwen2};

static std::unique_ptr<ModelBuilder>
readQwen3(Config &config, const Microbatch &microbatch, ModuleOp module) {
  DecoderDefaults defaults;
  defaults.headSize = 128;
  defaults.keyHeads = 32;
  defaults.attentionBias = false;
  auto qwen = DecoderConfig::read(config, microbatch, defaults);
  readWindows(config, qwen);
  return std::make_unique<Qwen3Builder>(qwen, module, microbatch);
}

const Family mlir::rota::qwen3Family = {
    .modelType = "qwen3",
    .description = "Llama with RMS norms of each head's query and key",
    .languageModel = "Qwen3ForCausalLM",
    .bareModel = "Qwen3Model",
    .read = readQwen3};

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

static std::unique_ptr<ModelBuilder>
readQwen3Moe(Config &config, const Microbatch &microbatch, ModuleOp module) {
  DecoderDefaults defaults;
  defaults.keyHeads = 4;
  defaults.attentionBias = false;
  auto qwen = DecoderConfig::read(config, microbatch, defaults);
  // Published files have a window that `use_sliding_window` switches off.
  if (config.flag("use_sliding_window", false))
    qwen.kinds.front().window = config.size("sliding_window", 4096);
  else
    config.find("sliding_window");
  config.find("max_window_layers"); // unused, as in transformers
  StringRef key = config.spelling("num_experts", "num_local_experts");
  auto experts =
      ExpertConfig::read(config, qwen, microbatch, {key, 128, 8, 768});
  experts.normalizes = config.flag("norm_topk_prob", false);
  experts.readLosses(config, microbatch);
  setSparseLayers(config, qwen);
  return std::make_unique<Qwen3MoeBuilder>(qwen, experts, module, microbatch);
}

const Family mlir::rota::qwen3MoeFamily = {
    .modelType = "qwen3_moe",
    .description = "Qwen3 with mixtures of experts in some layers or all",
    .languageModel = "Qwen3MoeForCausalLM",
    .bareModel = "Qwen3MoeModel",
    .read = readQwen3Moe};
