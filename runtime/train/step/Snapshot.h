// SPDX-License-Identifier: Apache-2.0
//
// A copy of a rank's masters and states from before a speculative update, for
// a rollback.
#ifndef ROTA_RUNTIME_TRAIN_STEP_SNAPSHOT_H
#define ROTA_RUNTIME_TRAIN_STEP_SNAPSHOT_H

#include "runtime/train/rank/Rank.h"

namespace rota {

class Snapshot {
public:
  /// Takes snapshotBytes of the rank's device. Throws RunError as
  /// Device::makeArena.
  explicit Snapshot(Rank &rank);

  void take();
  /// Writes the last copy back.
  void restore();

private:
  Rank &rank;
  const std::vector<SnapshotPiece> pieces;
  const std::unique_ptr<Arena> memory;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_SNAPSHOT_H
