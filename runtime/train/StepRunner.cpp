// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/StepRunner.h"
#include "runtime/train/Gather.h"

namespace rota {

void StepRunner::ask(bool records) {
  phases.timed("timeline", [&] {
    records ? executor.record() : executor.run(Executor::Mode::Train);
  });
  startLoss(rank);
  phases.timed("optimizer", [&] {
    optimizer.sumGradients();
    optimizer.update();
  });
}

} // namespace rota
