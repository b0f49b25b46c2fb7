// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint's weights as a folder of a model hub.
#ifndef ROTA_RUNTIME_CHECKPOINT_HUBFOLDER_H
#define ROTA_RUNTIME_CHECKPOINT_HUBFOLDER_H

#include "runtime/checkpoint/CheckpointFiles.h"

#include <optional>

namespace rota {

struct HubForm {
  // "F32" or "BF16"; none: BF16 where the configuration's `dtype` or
  // `torch_dtype` says bfloat16, else F32.
  std::optional<std::string> type;
  int64_t shardBytes = 5'000'000'000; // largest file of tensors
  // A hub folder whose other files are copied; empty: none.
  std::string model;
};

/// The result of writing.
struct HubSummary {
  int64_t tensors = 0, bytes = 0; // without headers
  int64_t files = 0;              // with weights
  std::string type;
  bool hasConfig = false;
  std::vector<std::string> copied; // names of the model's files
};

/// Writes `folder` with config.json, when the checkpoint has one, and the
/// master copies under hub names: model.safetensors, or shards
/// model-00001-of-N.safetensors with model.safetensors.index.json where one
/// file would be larger than a shard. A tensor that is larger than a shard has
/// one for itself. That key of config.json becomes the written type, and
/// `quantization_config` goes. One tensor at a time is in memory. Of
/// `form.model`, the files of the tokenizer, of generation and of the licence
/// are copied; others may tell of other weights.
///
/// The folder appears complete or not at all. Throws InputError when it exists
/// and is not empty, or its parent does not exist; DamagedCheckpoint; RunError
/// when it cannot be written.
HubSummary writeHubFolder(Checkpoint &checkpoint, const std::string &folder,
                          const HubForm &form);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_HUBFOLDER_H
