// SPDX-License-Identifier: Apache-2.0
//
// What a hub folder is written from: a checkpoint, or the files of a hub.
#ifndef ROTA_RUNTIME_CHECKPOINT_HUBCONTENTS_H
#define ROTA_RUNTIME_CHECKPOINT_HUBCONTENTS_H

#include "runtime/checkpoint/CheckpointFiles.h"
#include "runtime/checkpoint/HubTensors.h"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

namespace rota {

/// Tensors of one shape and type, one after the other in `read`.
struct WrittenTensor {
  std::vector<std::string> names;
  std::vector<int64_t> shape;        // of each
  std::string type;                  // as written
  int64_t bytes = 0;                 // of all, as written
  std::function<void(float *)> read; // all elements; of F32 and BF16
  const char *raw = nullptr; // the bytes, where they are written as they are
};

struct HubContents {
  std::string stem = "model"; // begins the names of files of tensors
  std::string configFile = "config.json";
  std::string configText; // of the configuration; empty: there is none
  nlohmann::ordered_json config;
  std::string typeKey;     // the key of config that names the elements' type
  std::string type;        // "F32" or "BF16"
  bool keepsTypes = false; // tensors in F16, F64 and integers stay as they are
  std::vector<WrittenTensor> tensors;
};

/// `type` is that of the tensors, or none: BF16 where the configuration says
/// bfloat16, else F32. `checkpoint` must outlive the contents. Throws
/// DamagedCheckpoint.
HubContents contentsOf(Checkpoint &checkpoint,
                       const std::optional<std::string> &type);

/// True for a folder or file that HubTensors reads.
bool isHub(const std::string &path);

/// Quantized tensors become `type`, or none: what the configuration says. All
/// other floating-point numbers become `type`, or keep their own. `tensors`
/// must outlive the contents. Throws InputError.
HubContents contentsOf(const HubTensors &tensors,
                       const std::optional<std::string> &type);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_HUBCONTENTS_H
