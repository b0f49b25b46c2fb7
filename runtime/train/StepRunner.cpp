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

void StepRunner::run(bool mayRecord) {
  if (!recording && !mayRecord)
    return ask(/*records=*/false);
  if (!recording) {
    executor.settle();
    rank.device().beginRecording();
    ask(/*records=*/true);
    recording = rank.device().endRecording();
  }
  recording->run();
  ++replays;
}

} // namespace rota
