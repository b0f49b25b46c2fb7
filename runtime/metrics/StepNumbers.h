// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a training step, described once for all that show them: the
// line of a step, --json, metrics.jsonl, TensorBoard, the summary of a run and
// the page of `rota report`.
#ifndef ROTA_RUNTIME_METRICS_STEPNUMBERS_H
#define ROTA_RUNTIME_METRICS_STEPNUMBERS_H

#include <iterator>
#include <string>

namespace rota {

enum class StepNumber : int {
  Loss,
  ValidationLoss,
  GradientNorm,
  LearningRate,
  TokensPerSecond,
  BubbleMeasured,
  BubblePlanned,
  Seconds,
  SecondsLeft,
  Utilization,
  CheckpointStall,
  SkippedSteps,
  RolledBackSteps,
  HiddenGathers,
  HiddenReductions,
  ExposedSeconds,
  PlannedBytes,
  ReachedBytes,
};

/// The form of a number for people. `Count` is a whole number with separators.
enum class NumberFormat { Loss, Plain, Count, Percent, Clock };

struct StepNumberInfo {
  const char *key;   // in JSON
  const char *title; // for people, with its unit where the format has none
  NumberFormat format;
  const char *tag = nullptr;    // TensorBoard's; null: the number is not there
  bool isInLine = false;        // the JSON line of a step has it where known
  const char *column = nullptr; // column of a step's line; null: none
  int width = 0;                // width of the column
};

/// One entry for each StepNumber, in the order of its values.
inline constexpr StepNumberInfo kStepNumbers[] = {
    {"loss", "loss", NumberFormat::Loss, "loss/train", true, "loss", 9},
    {"validation_loss", "validation loss", NumberFormat::Loss,
     "loss/validation", true, "validation", 10},
    {"gradient_norm", "gradient norm", NumberFormat::Plain,
     "optimizer/gradient_norm", true},
    {"learning_rate", "learning rate", NumberFormat::Plain,
     "optimizer/learning_rate", true},
    {"tokens_per_second", "tokens per second", NumberFormat::Count,
     "speed/tokens_per_second", true, "tokens/s", 10},
    {"bubble_measured", "bubble measured", NumberFormat::Percent,
     "bubble/measured", true, "bubble", 9},
    {"bubble_planned", "bubble planned", NumberFormat::Percent,
     "bubble/planned", true, "planned", 8},
    {"seconds", "seconds", NumberFormat::Plain, "time/seconds", true},
    {"seconds_left", "time left", NumberFormat::Clock, nullptr, true, "left",
     8},
    {"mfu", "MFU", NumberFormat::Percent, "speed/mfu", true},
    {"checkpoint_stall", "seconds held up by a checkpoint", NumberFormat::Plain,
     "time/checkpoint_stall"},
    {"skipped_steps", "steps skipped", NumberFormat::Count,
     "optimizer/skipped_steps"},
    {"rolled_back_steps", "steps rolled back", NumberFormat::Count,
     "optimizer/rolled_back_steps"},
    {"hidden_gathers", "gathers hidden", NumberFormat::Percent,
     "communication/hidden_gathers"},
    {"hidden_reductions", "reductions hidden", NumberFormat::Percent,
     "communication/hidden_reductions"},
    {"exposed_seconds", "seconds of exposed communication", NumberFormat::Plain,
     "communication/exposed_seconds"},
    {"planned_bytes", "bytes planned", NumberFormat::Count,
     "memory/planned_bytes"},
    {"reached_bytes", "bytes reached", NumberFormat::Count,
     "memory/reached_bytes"},
};
static_assert(std::size(kStepNumbers) == int(StepNumber::ReachedBytes) + 1);

constexpr const StepNumberInfo &infoOf(StepNumber number) {
  return kStepNumbers[static_cast<int>(number)];
}
constexpr const char *keyOf(StepNumber number) { return infoOf(number).key; }

/// A value as people read it: "2.6046", "12,345", "9.4 %", "5:09".
std::string textOf(NumberFormat format, double value);

/// "1:05:09", "5:09".
std::string clockText(double seconds);

} // namespace rota

#endif // ROTA_RUNTIME_METRICS_STEPNUMBERS_H
