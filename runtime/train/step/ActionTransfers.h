// SPDX-License-Identifier: Apache-2.0
//
// The messages, collectives and copies of a rank's actions, which run beside
// the actions that follow.
#ifndef ROTA_RUNTIME_TRAIN_STEP_ACTIONTRANSFERS_H
#define ROTA_RUNTIME_TRAIN_STEP_ACTIONTRANSFERS_H

#include "runtime/train/step/ActionTimes.h"

namespace rota {

class ActionTransfers {
public:
  ActionTransfers(Rank &rank, ActionTimes &times);

  /// Starts those of an action.
  void start(int number);
  /// Waits for those of an action that were started, without the core, which
  /// may be kept again afterwards.
  void finish(int number, KeptCore &core);

private:
  size_t transferCount(int number) const;

  Rank &rank;
  ActionTimes &times;
  std::vector<std::vector<Request>> requests; // by action; not waited for
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_ACTIONTRANSFERS_H
