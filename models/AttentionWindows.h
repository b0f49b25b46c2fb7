// SPDX-License-Identifier: Apache-2.0
//
// Sliding windows of attention as configurations describe them.
#ifndef ROTA_MODELS_ATTENTIONWINDOWS_H
#define ROTA_MODELS_ATTENTIONWINDOWS_H

#include "models/Decoder.h"

namespace mlir::rota {

/// Whether the attention of each layer has a window: by `layer_types` where the
/// file has it, else as `slides` says of a layer's number.
SmallVector<bool> readSlidingLayers(Config &config, int64_t layers,
                                    llvm::function_ref<bool(int64_t)> slides);

/// Gives the layers for which `sliding` is true a window of so many positions,
/// as the kind "sliding_attention"; the others are of "full_attention". Both
/// have the rotary settings that all layers had.
void setWindows(DecoderConfig &decoder, ArrayRef<bool> sliding, int64_t window);

} // namespace mlir::rota

#endif // ROTA_MODELS_ATTENTIONWINDOWS_H
