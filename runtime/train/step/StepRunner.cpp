// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/StepRunner.h"

namespace rota {

/// On a device that works on its own, losses are gathered after the timeline:
/// its streams wait for them, not the host.
void StepRunner::timeline(int64_t accumulationStep, bool records) {
  bool isBehind = rank.device().isAsynchronous();
  RunHooks hooks;
  hooks.endsStep = accumulationStep + 1 == rank.program().accumulationSteps;
  hooks.beforeUse = [&] { optimizer.settle(); };
  if (!isBehind)
    hooks.lossesKnown = [&] { losses.start(accumulationStep); };
  phases.timed("timeline", [&] {
    records ? executor.record() : executor.run(Executor::Mode::Train, hooks);
  });
  if (!isBehind)
    return;
  losses.start(accumulationStep);
  losses.wait();
}

bool StepRunner::endStep() {
  if (!optimizer.isUpdateRight()) {
    losses.wait();
    return false;
  }
  rank.flight().add(FlightEvent::OptimizerBegin, 0);
  phases.timed("optimizer", [&] {
    optimizer.sumGradients();
    losses.wait(); // the factor of gradients needs their weight
    optimizer.update();
  });
  rank.flight().add(FlightEvent::OptimizerEnd, 0);
  return true;
}

bool StepRunner::run(bool mayRecord,
                     FunctionRef<void(int64_t accumulationStep)> load) {
  int64_t before = rank.device().launches();
  bool updates = ask(mayRecord, load);
  if (int64_t asked = rank.device().launches() - before; asked > 0)
    stepLaunches = asked;
  return updates;
}

bool StepRunner::ask(bool mayRecord,
                     FunctionRef<void(int64_t accumulationStep)> load) {
  if (hasMeans(rank.program()))
    optimizer.settle(); // the forwards that are run first read all parameters
  executor.prepare(load);
  int64_t last = rank.program().accumulationSteps - 1;
  for (int64_t accumulationStep = 0; accumulationStep < last;
       ++accumulationStep) {
    load(accumulationStep);
    timeline(accumulationStep, /*records=*/false);
  }
  load(last);
  bool updates = true;
  recording.run(mayRecord && last == 0, [&](bool records) {
    timeline(last, records);
    updates = endStep();
  });
  return updates;
}

} // namespace rota
