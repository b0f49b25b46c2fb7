// SPDX-License-Identifier: Apache-2.0
//
// The model and the shapes of an evaluation, from a checkpoint.
#ifndef ROTA_TOOLS_ROTA_CHECKPOINTMODEL_H
#define ROTA_TOOLS_ROTA_CHECKPOINTMODEL_H

#include "tools/rota/options/RunOptions.h"

namespace rota {

/// The configuration in a checkpoint as a model that the compiler reads: a file
/// that is removed with this object.
class CheckpointModel {
public:
  CheckpointModel() = default;
  ~CheckpointModel();
  CheckpointModel(const CheckpointModel &) = delete;
  CheckpointModel &operator=(const CheckpointModel &) = delete;

  /// If the options name a checkpoint, or the model is one: sets the
  /// checkpoint, the model, unless it is given too, and what is not given of
  /// type, batch size, sequence length and experts' capacity to those of the
  /// checkpoint's run.
  /// Returns false, and an `error`, when the checkpoint cannot be read, has no
  /// configuration, or a shape is still missing.
  bool complete(RunOptions &options, std::string &error);
  /// The same, but for missing shapes, which stay 0.
  bool find(RunOptions &options, std::string &error);
  /// Whether the model of the options is the temporary file.
  bool isMade() const { return !folder.empty(); }

private:
  void take(const std::string &path, RunOptions &options);

  std::string folder; // the file's folder; empty: there is none
};

} // namespace rota

#endif // ROTA_TOOLS_ROTA_CHECKPOINTMODEL_H
