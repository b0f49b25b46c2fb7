// SPDX-License-Identifier: Apache-2.0
//
// The files of a hub folder that hold weights, and how they may be quantized.
#ifndef ROTA_RUNTIME_PROGRAM_WEIGHTFILES_H
#define ROTA_RUNTIME_PROGRAM_WEIGHTFILES_H

namespace rota {

/// The first of these that a folder has is read: the index of a checkpoint in
/// several files, or the one file.
inline constexpr const char *kWeightFiles[] = {"model.safetensors.index.json",
                                               "model.safetensors"};

/// Values of `quantization_config.quant_method` whose files are read.
inline constexpr const char *kQuantizations[] = {"fp8", "mxfp4"};
/// Rows and columns of a block of fp8, as `weight_block_size` has them.
inline constexpr int kQuantizedBlock = 128;

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_WEIGHTFILES_H
