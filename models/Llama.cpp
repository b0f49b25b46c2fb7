// SPDX-License-Identifier: Apache-2.0
//
// The Llama family (Touvron et al. 2023; Dubey et al. 2024), whose layer is
// that of DecoderLayer.cpp, and Mistral (Jiang et al. 2023), which adds
// windows.
#include "models/Decoder.h"
#include "models/UnsupportedKeys.h"

using namespace mlir;
using namespace mlir::rota;

LogicalResult mlir::rota::buildLlama(Config &config,
                                     const Microbatch &microbatch,
                                     ModuleOp module) {
  auto llama = DecoderConfig::read(config, microbatch);
  expectFullAttention(config);
  expectArchitecture(config, {"LlamaForCausalLM", "LlamaModel"});
  refuseUnsupportedKeys(config);
  if (config.failed())
    return failure();
  DecoderBuilder(llama, module, microbatch).build();
  return success();
}

LogicalResult mlir::rota::buildMistral(Config &config,
                                       const Microbatch &microbatch,
                                       ModuleOp module) {
  auto mistral = DecoderConfig::read(config, microbatch);
  // Every layer has the window. A file without the key has the first version's.
  if (config.find("sliding_window") || !config.has("sliding_window"))
    mistral.kinds.front().window = config.size("sliding_window", 4096);
  expectFullAttention(config);
  expectArchitecture(config, {"MistralForCausalLM", "MistralModel"});
  refuseUnsupportedKeys(config);
  if (config.failed())
    return failure();
  DecoderBuilder(mistral, module, microbatch).build();
  return success();
}
