// SPDX-License-Identifier: Apache-2.0
//
// Steps that a rank records once and then replays, so that the host's work for
// a step does not grow with the model's depth.
#ifndef ROTA_RUNTIME_TRAIN_STEP_STEPRECORDING_H
#define ROTA_RUNTIME_TRAIN_STEP_STEPRECORDING_H

#include "runtime/train/options/TrainerOptions.h"
#include "runtime/train/step/Executor.h"

namespace rota {

class StepRecording {
public:
  /// Nothing is recorded where the communicator cannot, with --no-recording,
  /// with --profile and --trace, which measure each step, and of programs with
  /// means of observations, which the host makes before each step.
  StepRecording(Rank &rank, Executor &executor, const Options &options);

  /// Asks the device for the work of a step, which is the same each time:
  /// replays the recording where there is one. `ask` asks for each part;
  /// `records` says that it does so for a recording, in which nothing is read
  /// or measured. With `mayRecord`, which is the same on all ranks, the results
  /// of a step before are known.
  void run(bool mayRecord, FunctionRef<void(bool records)> ask);

  /// Whether there is a recording.
  bool isMade() const { return recording != nullptr; }
  /// Replays so far.
  int64_t replays() const { return count; }

private:
  void replay();

  Rank &rank;
  Executor &executor;
  Recorder *const recorder; // null: no step is recorded
  std::unique_ptr<Recording> recording;
  int64_t count = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_STEPRECORDING_H
