// SPDX-License-Identifier: Apache-2.0
//
// The Llama family (Touvron et al. 2023; Dubey et al. 2024), whose layer is
// that of DecoderLayer.cpp, and Mistral (Jiang et al. 2023), which adds
// windows.
#include "models/Decoder.h"
#include "models/Family.h"

using namespace mlir;
using namespace mlir::rota;

static std::unique_ptr<ModelBuilder>
readLlama(Config &config, const Microbatch &microbatch, ModuleOp module) {
  DecoderDefaults defaults;
  defaults.attentionBias = false;
  auto llama = DecoderConfig::read(config, microbatch, defaults);
  llama.feedForwardBias = config.flag("mlp_bias", false);
  return std::make_unique<DecoderBuilder>(llama, module, microbatch);
}

const Family mlir::rota::llamaFamily = {
    .modelType = "llama",
    .description = "Llama 2 and 3, and models of their form: grouped-query "
                   "attention, rotary embedding, a gated feed-forward",
    .languageModel = "LlamaForCausalLM",
    .bareModel = "LlamaModel",
    .read = readLlama};

static std::unique_ptr<ModelBuilder>
readMistral(Config &config, const Microbatch &microbatch, ModuleOp module) {
  DecoderDefaults defaults;
  defaults.keyHeads = 8;
  auto mistral = DecoderConfig::read(config, microbatch, defaults);
  // Every layer has the window. A file without the key has the first version's.
  if (config.find("sliding_window") || !config.has("sliding_window"))
    mistral.kinds.front().window = config.size("sliding_window", 4096);
  return std::make_unique<DecoderBuilder>(mistral, module, microbatch);
}

const Family mlir::rota::mistralFamily = {
    .modelType = "mistral",
    .description = "Llama with a sliding window in every layer",
    .languageModel = "MistralForCausalLM",
    .bareModel = "MistralModel",
    .read = readMistral};
