// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/StepRunner.h"
#include "runtime/train/Gather.h"

namespace rota {

void StepRunner::timeline(int64_t round, bool records) {
  phases.timed("timeline", [&] {
    records ? executor.record() : executor.run(Executor::Mode::Train);
  });
  startLoss(rank, round);
}

void StepRunner::endStep() {
  rank.flight().add(FlightEvent::OptimizerBegin, 0);
  phases.timed("optimizer", [&] {
    optimizer.sumGradients();
    optimizer.update();
  });
  rank.flight().add(FlightEvent::OptimizerEnd, 0);
}

void StepRunner::run(bool mayRecord, FunctionRef<void(int64_t round)> load) {
  executor.prepare(load);
  int64_t last = rank.program().rounds - 1;
  for (int64_t round = 0; round < last; ++round) {
    load(round);
    timeline(round, /*records=*/false);
  }
  load(last);
  recording.run(mayRecord && last == 0, [&](bool records) {
    timeline(last, records);
    endStep();
  });
}

} // namespace rota
