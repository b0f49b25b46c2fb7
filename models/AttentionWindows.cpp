// SPDX-License-Identifier: Apache-2.0
#include "models/AttentionWindows.h"

using namespace mlir;
using namespace mlir::rota;

SmallVector<bool>
mlir::rota::readSlidingLayers(Config &config, int64_t layers,
                              llvm::function_ref<bool(int64_t)> slides) {
  SmallVector<bool> sliding;
  for (int64_t layer = 0; layer < layers; ++layer)
    sliding.push_back(slides(layer));
  const nlohmann::json *kinds = config.find("layer_types");
  if (!kinds || config.failed()) // the number of layers may be wrong
    return sliding;
  auto isKnown = [](const nlohmann::json &kind) {
    return kind == "full_attention" || kind == "sliding_attention";
  };
  if (!kinds->is_array() || int64_t(kinds->size()) != layers ||
      !llvm::all_of(*kinds, isKnown)) {
    config.error("layer_types")
        << "expected \"full_attention\" or \"sliding_attention\" for each of "
        << layers << " layers, got " << shortText(*kinds)
        << "; other kinds are not supported";
    return sliding;
  }
  for (int64_t layer = 0; layer < layers; ++layer)
    sliding[layer] = (*kinds)[layer] == "sliding_attention";
  return sliding;
}

void mlir::rota::setWindows(DecoderConfig &decoder, ArrayRef<bool> sliding,
                            int64_t window) {
  Rotary rotary = decoder.kinds.front().rotary;
  decoder.kinds = {{"full_attention", std::nullopt, rotary},
                   {"sliding_attention", window, rotary}};
  decoder.kindOf.assign(sliding.begin(), sliding.end());
}
