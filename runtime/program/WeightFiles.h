// SPDX-License-Identifier: Apache-2.0
//
// The files of a hub folder that hold weights.
#ifndef ROTA_RUNTIME_PROGRAM_WEIGHTFILES_H
#define ROTA_RUNTIME_PROGRAM_WEIGHTFILES_H

namespace rota {

/// The first of these that a folder has is read: the index of a checkpoint in
/// several files, or the one file.
inline constexpr const char *kWeightFiles[] = {"model.safetensors.index.json",
                                               "model.safetensors"};

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_WEIGHTFILES_H
