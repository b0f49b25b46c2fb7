// SPDX-License-Identifier: Apache-2.0
//
// Weights as a folder of a model hub.
#ifndef ROTA_RUNTIME_CHECKPOINT_HUBFOLDER_H
#define ROTA_RUNTIME_CHECKPOINT_HUBFOLDER_H

#include "runtime/checkpoint/HubContents.h"

namespace rota {

struct HubForm {
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

/// Writes `folder` with config.json, where the contents have one, and the
/// tensors: model.safetensors, or shards model-00001-of-N.safetensors with
/// model.safetensors.index.json where one file would be larger than a shard. A
/// tensor that is larger than a shard has one for itself. The type of the
/// tensors stands in config.json, and `quantization_config` goes. One tensor at
/// a time is in memory. Of `form.model`, the files of the tokenizer, of
/// generation and of the licence are copied; others may tell of other weights.
///
/// The folder appears complete or not at all. Throws InputError when it exists
/// and is not empty, or its parent does not exist; DamagedCheckpoint; RunError
/// when it cannot be written.
HubSummary writeHubFolder(HubContents &contents, const std::string &folder,
                          const HubForm &form);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_HUBFOLDER_H
