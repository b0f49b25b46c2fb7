// SPDX-License-Identifier: Apache-2.0
//
// The measured times of a rank's actions and transfers, run by run.
#ifndef ROTA_RUNTIME_TRAIN_STEP_ACTIONTIMES_H
#define ROTA_RUNTIME_TRAIN_STEP_ACTIONTIMES_H

#include "runtime/trace/ChromeTrace.h"
#include "runtime/train/rank/Rank.h"

#include <array>
#include <deque>
#include <vector>

namespace rota {

class ActionTimes {
public:
  /// The events of the first `tracedRuns` runs are kept for a trace; where
  /// there are any, every rank makes its object, so that their times begin
  /// together.
  ActionTimes(Rank &rank, int64_t tracedRuns);

  /// The work that an action has asked the device for.
  struct Span {
    int action;
    Device::TimePoint begin, end;
  };

  /// A run that is measured begins and ends; outside of one nothing is added.
  void beginRun(bool trains);
  void endRun();
  bool isOn() const { return on; }
  /// Where the device's work is now; 0 where nothing is measured.
  Device::TimePoint mark() const { return on ? rank.device().mark() : 0; }
  void add(const Span &span);
  /// A transfer of that action; `waitedFrom`: when the rank began to wait for
  /// it.
  void add(int action, TransferTime span, double waitedFrom);

  /// Reads the times of the last run, before the device may forget them. Waits
  /// for the device.
  void settle();

  /// Mean seconds of each action over the training runs so far, without the
  /// first (which touches new memory) once there is another.
  std::vector<double> meanSeconds();
  /// Times of messages and transfers in the training runs so far, by
  /// ActionKind.
  using KindTimes = std::array<TransferTimes, kActionKindCount>;
  const KindTimes &transfers() const { return kindTimes; }
  /// The actions of the traced runs.
  const std::vector<TraceEvent> &events();

private:
  struct MeasuredRun {
    bool isKnown = true;
    bool trains = false;
    int64_t number = 0; // number among all runs
    std::vector<Span> spans;
  };

  Rank &rank;
  const int64_t tracedRuns;
  bool on = false;
  int64_t runs = 0;
  int64_t trainingRuns = 0; // whose times are known
  // When every rank was ready, on the communicator's clock and the device's.
  double transferOrigin, computeOrigin;
  // This run, and the one before, whose times are not read yet: a host that is
  // ahead of its device does not wait for them.
  MeasuredRun current, previous;
  // Last points of runs whose times are known. Those of a step are kept until
  // the next step is done, whose runs come before its end is read.
  std::deque<Device::TimePoint> ends;
  std::vector<double> seconds, firstSeconds; // by action, in training
  KindTimes kindTimes;
  std::vector<TraceEvent> recorded;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_ACTIONTIMES_H
