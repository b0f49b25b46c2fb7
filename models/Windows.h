// SPDX-License-Identifier: Apache-2.0
//
// Sliding windows of attention as configurations describe them.
#ifndef ROTA_MODELS_WINDOWS_H
#define ROTA_MODELS_WINDOWS_H

#include "models/ModelBuilder.h"

namespace mlir::rota {

/// Whether the attention of each layer has a window: by `layer_types` where the
/// file has it, else as `slides` says of a layer's number.
SmallVector<bool> readSlidingLayers(Config &config, int64_t layers,
                                    llvm::function_ref<bool(int64_t)> slides);

/// Reads the latest tokens that a position attends to, itself included. A
/// window of the whole sequence changes nothing; a narrower one is reported,
/// because `DecoderBuilder::attend` has none.
void readWindow(Config &config, StringRef key, std::optional<int64_t> fallback,
                const Microbatch &microbatch);

} // namespace mlir::rota

#endif // ROTA_MODELS_WINDOWS_H
