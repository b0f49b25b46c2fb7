// SPDX-License-Identifier: Apache-2.0
//
// The options of checkpoints.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_CHECKPOINTOPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_CHECKPOINTOPTIONS_H

#include "runtime/checkpoint/Commit.h"
#include "runtime/train/options/OptionRows.h"

namespace rota {

struct CheckpointOptions {
  std::string folder;   // empty: no checkpoints
  int64_t interval = 0; // steps; 0: none by steps
  double seconds = 0.0; // 0: none by time
  KeepRules keep;
};

OptionRows checkpointRows(CheckpointOptions &options);
OptionMistake checkCheckpointOptions(const CheckpointOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_CHECKPOINTOPTIONS_H
