// SPDX-License-Identifier: Apache-2.0
//
// Actions of a rank's timeline at which it needs something of other ranks, or
// has something for them.
#ifndef ROTA_RUNTIME_TRAIN_STEP_TIMELINEMARKS_H
#define ROTA_RUNTIME_TRAIN_STEP_TIMELINEMARKS_H

#include "runtime/program/Program.h"

namespace rota {

/// Numbers of actions; the number of all actions where there is none.
struct TimelineMarks {
  int firstUse;      // that reads parameters of other stages or computes
  int firstGradient; // that makes gradients
  // That writes losses; or if none does, the first after which they may be
  // gathered.
  int lastLoss;
};

TimelineMarks findMarks(const Program &program, int stageNumber);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_TIMELINEMARKS_H
