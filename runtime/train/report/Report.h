// SPDX-License-Identifier: Apache-2.0
//
// The output of a run: aligned text for people, coloured on a terminal, or one
// JSON object a line for programs.
#ifndef ROTA_RUNTIME_TRAIN_REPORT_REPORT_H
#define ROTA_RUNTIME_TRAIN_REPORT_REPORT_H

#include "runtime/metrics/StepNumbers.h"
#include "runtime/train/Evaluation.h"
#include "runtime/train/options/TrainerOptions.h"
#include "runtime/train/report/RunSummary.h"
#include "runtime/train/sample/SampleText.h"
#include "runtime/train/step/Loss.h"
#include "runtime/train/step/Observed.h"

#include <optional>

namespace rota {

/// Why a run has ended while steps are left.
enum class EarlyEnd { None, Signal, TimeLimit };
template <> struct Names<EarlyEnd> {
  static constexpr const char *list[] = {"none", "signal", "time-limit"};
};

/// One line of progress.
struct StepReport {
  int64_t step = 0;
  double loss = 0.0;
  std::vector<LossPart> lossParts;      // where the loss has terms
  std::vector<ObservedStep> observed;   // where layers are observed
  std::optional<double> validationLoss; // for a step that validates
  std::optional<BestValidation> best;   // best validation so far
  bool reachedTarget = false;           // by one of them
  EarlyEnd earlyEnd = EarlyEnd::None;   // by the step
  double learningRate = 0.0;
  double gradientNorm = 0.0; // before clipping
  SkipReason skip = SkipReason::None;
  int64_t skippedSteps = 0;    // so far, those before a checkpoint included
  int64_t rolledBackSteps = 0; // by this process: --post-validate
  double tokensPerSecond = 0.0;
  std::optional<double> utilization; // MFU, where the peak is known
  double bubble = 0.0;               // measured
  double plannedBubble =
      0.0; // for steps with or without a barrier, as the run's
  double seconds = 0.0, secondsLeft = 0.0;
  int64_t replayed = 0;         // steps so far that were replays of a recording
  int64_t launches = 0;         // of a step: StepRunner::launches
  double checkpointStall = 0.0; // seconds that a checkpoint held the step up

  /// Nothing where it is not known, or no number of a report.
  std::optional<double> valueOf(StepNumber number) const;
};

class Report {
public:
  /// Prints if `prints`: one rank does.
  Report(const Program &program, const Options &options, bool prints);

  /// The steps of this process follow step `done`.
  void continueAfter(int64_t done) { before = done; }

  /// Whether the line of step `t` stays, whatever its results are: the first,
  /// and every log interval.
  bool keeps(int64_t t) const;
  /// Whether the line of a step with known results stays: also that of a
  /// skipped step, and the last one.
  bool keeps(const StepReport &progress, bool last) const;

  /// The model, its timeline and its memory plan.
  void begin(const std::string &data);
  /// A step; printed if its line stays, on a terminal also in between, over the
  /// same line.
  void step(const StepReport &progress, bool last);
  /// The source of the weights that the run begins with.
  void weights(const std::string &text);
  /// The sample after a step.
  void sample(const Sample &sample);
  /// A remark that is not an error.
  void note(const std::string &text);
  /// Measured against planned memory, the final losses, the summary, how much
  /// of the transfers' time was hidden, and how a run with steps left goes on.
  void end(const StepReport &progress, const RunSummary &summary);
  /// Tables of calls and time. `phases`: wall time of the parts of a step.
  void profile(const ProfileTables &tables, const Profile::Table &phases,
               const std::vector<RankReport> &ranks);

private:
  void header(const StepReport &progress);
  void memory(const std::vector<RankReport> &ranks);
  void clearLine();

  const Program &program;
  const Options &options;
  bool prints, terminal;
  int64_t before = 0; // steps before those of this process
  bool headerPrinted = false;
  bool lineOpen = false; // the cursor is at the end of an unfinished line
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_REPORT_REPORT_H
