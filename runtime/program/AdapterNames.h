// SPDX-License-Identifier: Apache-2.0
//
// Names of low-rank adapters. A linear layer with the weight W = "q.weight" and
// an adapter computes W x + alpha / rank * B (A x) with the parameters A =
// "q.lora_A.weight" and B = "q.lora_B.weight". Files of adapters, those of
// PEFT, have these names after a prefix.
#ifndef ROTA_RUNTIME_PROGRAM_ADAPTERNAMES_H
#define ROTA_RUNTIME_PROGRAM_ADAPTERNAMES_H

#include <string>
#include <string_view>

namespace rota {

inline constexpr const char *kAdapterPrefix = "base_model.model.";
inline constexpr const char *kAdapterConfig = "adapter_config.json";
inline constexpr const char *kAdapterFile = "adapter_model.safetensors";
inline constexpr std::string_view kAdapterA = ".lora_A.weight",
                                  kAdapterB = ".lora_B.weight";

/// Options of runs with adapters, also in Program::modelOptions.
inline constexpr const char *kLoraRank = "lora-rank",
                            *kLoraAlpha = "lora-alpha",
                            *kLoraTargets = "lora-targets";

/// The end of the names of weights of linear layers.
inline constexpr std::string_view kWeightEnd = ".weight";

/// "q.lora_A.weight" for "q.weight", which ends so, and kAdapterA.
inline std::string adapterName(std::string_view weight, std::string_view end) {
  return std::string(weight.substr(0, weight.size() - kWeightEnd.size())) +
         std::string(end);
}

inline bool isAdapter(std::string_view name) {
  return name.ends_with(kAdapterA) || name.ends_with(kAdapterB);
}

/// The name of the weight to which the adapter with that name adds.
inline std::string adaptedWeight(std::string_view name) {
  return std::string(name.substr(0, name.size() - kAdapterA.size())) +
         std::string(kWeightEnd);
}

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_ADAPTERNAMES_H
