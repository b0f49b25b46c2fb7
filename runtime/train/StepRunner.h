// SPDX-License-Identifier: Apache-2.0
//
// The work of a training step, the same each time: timeline, losses, gradients
// and updates. Where the device and the communicator can, it is recorded once
// and then replayed.
#ifndef ROTA_RUNTIME_TRAIN_STEPRUNNER_H
#define ROTA_RUNTIME_TRAIN_STEPRUNNER_H

#include "runtime/train/Executor.h"
#include "runtime/train/Optimizer.h"
#include "runtime/train/PhaseTimes.h"

namespace rota {

class StepRunner {
public:
  StepRunner(Rank &rank, Executor &executor, Optimizer &optimizer,
             PhaseTimes &phases)
      : rank(rank), executor(executor), optimizer(optimizer), phases(phases) {}

  /// Asks for the work of a step. With `mayRecord`, a first step has run and
  /// its results are known: the work is recorded, if it is not yet, and
  /// replayed. The step's result lies at RuntimeMemory::result.
  void run(bool mayRecord);

  /// Steps so far that were replays.
  int64_t replayed() const { return replays; }

private:
  void ask(bool records);

  Rank &rank;
  Executor &executor;
  Optimizer &optimizer;
  PhaseTimes &phases;
  std::unique_ptr<Recording> recording;
  int64_t replays = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEPRUNNER_H
