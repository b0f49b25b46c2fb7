// SPDX-License-Identifier: Apache-2.0
//
// Changes of a folder of checkpoints (runtime/checkpoint/Folder.h) as a whole.
// A crash at any point leaves checkpoints that are whole, and unfinished
// folders beside them. All functions throw RunError with path and cause.
#ifndef ROTA_RUNTIME_CHECKPOINT_COMMIT_H
#define ROTA_RUNTIME_CHECKPOINT_COMMIT_H

#include "runtime/checkpoint/Manifest.h"

namespace rota {

/// The checkpoints that stay when a new one is there.
struct KeepRules {
  int64_t last = 2;  // the newest so many whole ones, the new included
  int64_t every = 0; // and those of multiples of this step; 0: none
  bool best = false; // and that of the best validation
};

/// Makes the folder of an unfinished checkpoint, if it is not there.
void makePartialFolder(const std::string &folder, int64_t step);

/// Writes the manifest beside the files of the unfinished checkpoint of its
/// step, and gives the checkpoint its name when all is on disk. One of that
/// step that is there already is replaced.
void commitCheckpoint(const std::string &folder, const Manifest &manifest);

/// Removes what the rules do not keep of the checkpoints up to that of `run`,
/// which is whole. Later ones are of another run, and stay. A damaged one does
/// not count among the newest, and goes with those that are older than these.
void removeOldCheckpoints(const std::string &folder, const RunState &run,
                          const KeepRules &rules);

/// Removes the unfinished folders that a killed run left. No other process
/// writes to the folder meanwhile.
void removeUnfinished(const std::string &folder);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_COMMIT_H
