// SPDX-License-Identifier: Apache-2.0
//
// The wall time of a run by its use.
#ifndef ROTA_RUNTIME_TRAIN_REPORT_TIMEUSE_H
#define ROTA_RUNTIME_TRAIN_REPORT_TIMEUSE_H

#include <chrono>

namespace rota {

/// Seconds. What is left of the total is the end: saving, reports.
struct TimeUse {
  double start = 0.0;       // before the first step
  double steps = 0.0;       // steps that counted, with their data
  double validation = 0.0;  // and samples
  double checkpoints = 0.0; // that held the steps up
  double total = 0.0;

  /// The share of the total in steps that counted.
  double goodput() const { return total > 0.0 ? steps / total : 0.0; }
};

/// Measures a TimeUse. The run begins where this is made.
class TimeUseClock {
public:
  /// The first step begins now.
  void endStart() { use.start = seconds(); }
  void addStep(double stepSeconds) { use.steps += stepSeconds; }
  void addValidation(double more) { use.validation += more; }
  void addCheckpoint(double stall) { use.checkpoints += stall; }

  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         begin)
        .count();
  }
  TimeUse read() const {
    TimeUse now = use;
    now.total = seconds();
    return now;
  }

private:
  const std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  TimeUse use;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_REPORT_TIMEUSE_H
