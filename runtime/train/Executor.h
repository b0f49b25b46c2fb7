// SPDX-License-Identifier: Apache-2.0
//
// Runs the timelines: each rank's thread reads its own list of actions. There
// is no schedule in here, only actions, waits and calls.
#ifndef ROTA_RUNTIME_TRAIN_EXECUTOR_H
#define ROTA_RUNTIME_TRAIN_EXECUTOR_H

#include "runtime/collective/local/Channels.h"
#include "runtime/trace/ChromeTrace.h"
#include "runtime/train/Machine.h"

#include <chrono>

namespace rota {

class Executor {
public:
  enum class Mode { Train, Evaluate };

  /// With `record`, the compute actions of the first runs are kept for a trace.
  Executor(Machine &machine, bool record);

  /// Runs all timelines once. Evaluation runs each action's evalCalls and hands
  /// over activations only. Throws RunError that names rank, chunk, microbatch
  /// and action when one fails.
  void run(Mode mode);

  /// Sum and weight of the loss over all microbatches, in index order, in f64.
  struct Loss {
    double sum = 0.0;
    double weight = 0.0;
  };
  /// Throws RunError when a microbatch's loss is not finite.
  Loss loss() const;

  /// Mean seconds of each action of each rank over the training runs so far,
  /// without the first (which touches new memory) once there is another.
  std::vector<std::vector<double>> meanSeconds() const;

  /// The compute actions of the first runs, when recording.
  std::vector<TraceEvent> events() const;

private:
  void runRank(int rank, Mode mode);
  void compute(int rank, int action, Mode mode);
  void communicate(int rank, int action, Mode mode);
  void call(int rank, const Call &call);
  double now() const;

  Machine &machine;
  const Program &program;
  Channels channels;
  const bool record;
  const std::chrono::steady_clock::time_point origin;
  int64_t runs = 0, trainingRuns = 0;
  // [rank][action], training: sums after the first run, and the first run.
  std::vector<std::vector<double>> seconds, firstSeconds;
  std::vector<std::vector<TraceEvent>> recorded; // [rank]
};

/// The bubble share that the measured times give: 1 - busy / (ranks *
/// makespan), where the makespan is the longest path through the timelines with
/// each action's mean measured seconds, as if each rank had a core of its own.
/// So it can be compared with the plan although the ranks share this machine's
/// cores.
double measuredBubble(const Program &program,
                      const std::vector<std::vector<double>> &meanSeconds);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_EXECUTOR_H
