// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step/Skipping.h"
#include "runtime/Error.h"
#include "runtime/train/step/Loss.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace rota {

/// Entry of RunState::values: steps skipped, steps skipped in a row, then the
/// history.
static constexpr const char *kSkippedSteps = "skipped_steps";
static constexpr int64_t kSavedNumbers = 2 + kHistoryNumbers;

std::string reasonText(SkipReason reason, const SkipOptions &options) {
  if (reason == SkipReason::NotFinite)
    return "loss or gradient is not finite";
  return fmt::format("{} is more than {} standard deviations above the mean of "
                     "the last {}",
                     reason == SkipReason::Loss ? "loss" : "gradient norm",
                     options.spikes, kHistoryLength);
}

Skipping::Skipping(Rank &rank, const SkipOptions &options)
    : rank(rank), options(options) {
  if (isOn() && numberOf(Scalar::Kind::Skip) < 0)
    throw InputError(
        fmt::format("'{}': the updates of this program cannot be skipped",
                    options.nonfinite ? "skip-nonfinite" : "skip-spikes"));
}

/// In Program::scalars; -1: no update reads one of the kind.
int64_t Skipping::numberOf(Scalar::Kind kind) const {
  const std::vector<Scalar> &scalars = rank.program().scalars;
  auto found =
      std::find_if(scalars.begin(), scalars.end(),
                   [&](const Scalar &scalar) { return scalar.kind == kind; });
  return found == scalars.end() ? -1 : found - scalars.begin();
}

std::array<int64_t, 2> Skipping::beginStep() {
  int64_t unknown = isOn() ? begun - known : 0;
  int64_t number = ++begun - skippedSteps;
  return {number, number - unknown};
}

void Skipping::decide() {
  if (!isOn())
    return;
  const RuntimeMemory &places = rank.places();
  StepDecision decision;
  decision.losses = stepLosses(rank);
  decision.deviations = options.spikes;
  decision.history = static_cast<double *>(rank.runtimeAt(places.history));
  decision.scalars = static_cast<const float *>(rank.runtimeAt(places.scalars));
  decision.scalarCount = static_cast<int64_t>(rank.program().scalars.size());
  decision.scaleNumber = numberOf(Scalar::Kind::GradientScale);
  decision.skipNumber = numberOf(Scalar::Kind::Skip);
  decision.stepScalars =
      static_cast<float *>(rank.at(rank.stage().step.scalars));
  decision.result = static_cast<double *>(rank.runtimeAt(places.result));
  rank.device().decideStep(decision);
}

SkipReason Skipping::read(std::span<const double> result) {
  ++known;
  auto reason = static_cast<SkipReason>(static_cast<int>(result[kSkipResult]));
  if (reason == SkipReason::None) {
    inARow = 0;
    return reason;
  }
  ++skippedSteps;
  if (++inARow >= kMostSkipped)
    throw RunError(
        fmt::format("{} steps in a row were skipped, step {} because "
                    "its {}",
                    inARow, known, reasonText(reason, options)));
  return reason;
}

void Skipping::save(RunState &state) const {
  if (!isOn() && skippedSteps == 0)
    return;
  std::vector<double> &values = state.values[kSkippedSteps];
  values.resize(kSavedNumbers);
  values[0] = static_cast<double>(skippedSteps);
  values[1] = static_cast<double>(inARow);
  rank.device().read(rank.runtimeAt(rank.places().history), &values[2],
                     8 * kHistoryNumbers);
}

/// A count from 0 to `most` among saved numbers.
static int64_t countOf(double number, int64_t most) {
  if (!(number >= 0.0 && number <= static_cast<double>(most)) ||
      number != std::floor(number))
    throw InputError(fmt::format(
        "checkpoint value '{}': expected an integer from 0 to {}, got {}",
        kSkippedSteps, most, number));
  return static_cast<int64_t>(number);
}

void Skipping::restore(const RunState &state) {
  auto found = state.values.find(kSkippedSteps);
  if (found == state.values.end())
    return;
  const std::vector<double> &values = found->second;
  if (static_cast<int64_t>(values.size()) != kSavedNumbers)
    throw InputError(
        fmt::format("checkpoint value '{}': expected {} numbers, got {}",
                    kSkippedSteps, kSavedNumbers, values.size()));
  skippedSteps = countOf(values[0], state.step);
  inARow = countOf(values[1], skippedSteps);
  countOf(values[2], state.step);
  rank.device().write(&values[2], rank.runtimeAt(rank.places().history),
                      8 * kHistoryNumbers);
}

} // namespace rota
