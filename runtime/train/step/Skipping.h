// SPDX-License-Identifier: Apache-2.0
//
// Steps that update nothing: those whose loss or gradient is not finite, or far
// above that of the steps before. The device decides (Device::decideStep), so
// the host need not wait; here are the numbers that it decides with, and what
// the host learns of the decisions later.
#ifndef ROTA_RUNTIME_TRAIN_STEP_SKIPPING_H
#define ROTA_RUNTIME_TRAIN_STEP_SKIPPING_H

#include "runtime/train/options/SkipOptions.h"
#include "runtime/train/rank/Rank.h"
#include "runtime/train/step/RunValues.h"

#include <array>
#include <span>

namespace rota {

/// "loss is more than 6 standard deviations above the mean of the last 128".
std::string reasonText(SkipReason reason, const SkipOptions &options);

class Skipping : public RunValues {
public:
  /// Throws InputError when the options want steps to be skipped and the
  /// program's updates have no Scalar::Kind::Skip.
  Skipping(Rank &rank, const SkipOptions &options);

  bool isOn() const { return options.isOn(); }

  /// The next step is the one after step `done`.
  void continueAfter(int64_t done) { begun = known = done; }

  /// Counts a step. Returns its number among those that update, t of
  /// Scalar::Kind::Correction: first if the step before is one of them, second
  /// if it is skipped. The two are equal where read() has told which.
  std::array<int64_t, 2> beginStep();

  /// If a step may be skipped: asks the device, after finishStep, for the
  /// decision and for the scalars that fit it. RuntimeMemory::scalars has the
  /// two versions that beginStep() numbers.
  void decide();

  /// Takes in the decision out of the result of a step: of each step, in order,
  /// at most one step late. Throws RunError after kMostSkipped skipped steps in
  /// a row: the window that steps are compared with stands still, so no later
  /// step would be another.
  SkipReason read(std::span<const double> result);
  static constexpr int64_t kMostSkipped = 100;

  /// Steps skipped so far, as far as read() has told; those before the
  /// checkpoint that the run goes on from included.
  int64_t skipped() const { return skippedSteps; }

  /// Writes the steps skipped, those in a row, and the history of losses and
  /// norms, once a step may be skipped or was. Every result must have been
  /// read. Waits for the device.
  void save(RunState &state) const override;
  /// Throws InputError for other numbers than save() writes.
  void restore(const RunState &state) override;

private:
  int64_t numberOf(Scalar::Kind kind) const;

  Rank &rank;
  const SkipOptions options;
  int64_t begun = 0, known = 0; // steps, and those whose results were read
  int64_t skippedSteps = 0, inARow = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_SKIPPING_H
