// SPDX-License-Identifier: Apache-2.0
//
// A rank's masters and states from before an update, so that it can be taken
// back.
#ifndef ROTA_RUNTIME_TRAIN_STEP_KEPTSTATE_H
#define ROTA_RUNTIME_TRAIN_STEP_KEPTSTATE_H

#include "runtime/train/rank/Rank.h"

namespace rota {

class KeptState {
public:
  /// Takes keptBytes of the rank's device. Throws RunError as
  /// Device::makeArena.
  explicit KeptState(Rank &rank);

  void keep();
  /// Writes what was kept last back.
  void restore();

private:
  Rank &rank;
  const std::vector<KeptPiece> pieces;
  const std::unique_ptr<Arena> memory;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_KEPTSTATE_H
