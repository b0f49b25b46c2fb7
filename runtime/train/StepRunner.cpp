// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/StepRunner.h"
#include "runtime/train/Gather.h"

namespace rota {

void StepRunner::ask(bool records) {
  phases.timed("timeline", [&] {
    records ? executor.record() : executor.run(Executor::Mode::Train);
  });
  startLoss(rank);
  rank.flight().add(FlightEvent::OptimizerBegin, 0);
  phases.timed("optimizer", [&] {
    optimizer.sumGradients();
    optimizer.update();
  });
  rank.flight().add(FlightEvent::OptimizerEnd, 0);
}

} // namespace rota
