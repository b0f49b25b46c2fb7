// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/StepRecording.h"

namespace rota {

StepRecording::StepRecording(Rank &rank, Executor &executor,
                             const Options &options)
    : rank(rank), executor(executor),
      recorder(options.noRecording || options.profile ||
                       !options.trace.empty() || hasMeans(rank.program())
                   ? nullptr
                   : rank.communicator().recorder()) {}

void StepRecording::run(bool mayRecord, FunctionRef<void(bool records)> ask) {
  if (recording)
    return replay();
  if (!recorder || !mayRecord)
    return ask(/*records=*/false);
  executor.times().settle();
  recorder->begin();
  ask(/*records=*/true);
  recording = recorder->end([&rank = rank] { return rank.reached(); });
  replay();
}

void StepRecording::replay() {
  recording->run();
  executor.noteReplay();
  ++count;
}

} // namespace rota
