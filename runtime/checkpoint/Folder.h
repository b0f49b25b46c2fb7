// SPDX-License-Identifier: Apache-2.0
//
// The names in a folder of checkpoints. A checkpoint is the folder "step-N",
// and is whole: it gets this name after its last byte is on disk. Names that
// begin with a dot are of checkpoints that are being written or removed.
//
//   DIR/lock                                    held by the run that writes
//   DIR/step-0000000200/manifest.json
//   DIR/step-0000000200/rank-0.safetensors      ...
//   DIR/.step-0000000300.partial/               being written
//   DIR/.step-0000000100.old/                   being removed
#ifndef ROTA_RUNTIME_CHECKPOINT_FOLDER_H
#define ROTA_RUNTIME_CHECKPOINT_FOLDER_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

inline constexpr const char *kManifestFile = "manifest.json";
inline constexpr const char *kLockFile = "lock";

/// The largest number of steps or sequences of a checkpoint: exact as a double
/// too.
inline constexpr int64_t kMostSteps = int64_t(1) << 53;

/// The name of a checkpoint's folder, and back; no step for other names. Names
/// of 10 digits or more sort by step as long as all have the same number.
std::string checkpointName(int64_t step);
std::optional<int64_t> stepOfCheckpoint(std::string_view name);

/// The names of its folder while it is written, and while it is removed.
std::string partialName(int64_t step);
std::string removedName(int64_t step);
/// Whether it is one of these two, of any step.
bool isUnfinished(std::string_view name);

/// The name of the file with the pieces of a rank.
std::string rankFileName(int rank);

/// The steps of the checkpoints in `folder`, ascending; none where there is no
/// such folder. Throws InputError when it cannot be read.
std::vector<int64_t> checkpointsIn(const std::string &folder);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_FOLDER_H
