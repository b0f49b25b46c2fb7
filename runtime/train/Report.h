// SPDX-License-Identifier: Apache-2.0
//
// What a run tells people (aligned, coloured on a terminal) or programs (one
// JSON object a line).
#ifndef ROTA_RUNTIME_TRAIN_REPORT_H
#define ROTA_RUNTIME_TRAIN_REPORT_H

#include "runtime/train/Machine.h"
#include "runtime/train/Options.h"

#include <optional>

namespace rota {

/// One line of progress.
struct Progress {
  int64_t step = 0;
  double loss = 0.0;
  std::optional<double> validationLoss; // the latest
  double learningRate = 0.0;
  double gradientNorm = 0.0; // before clipping
  double tokensPerSecond = 0.0;
  double bubble = 0.0; // measured
  double seconds = 0.0, secondsLeft = 0.0;
};

class Report {
public:
  Report(const Program &program, const Options &options);

  /// The model, its timeline and its memory plan.
  void begin(const std::string &data);
  /// A step; printed every log interval and after the last one, on a terminal
  /// also in between, over the same line.
  void step(const Progress &progress, bool last);
  /// A remark that is not an error.
  void note(const std::string &text);
  /// The final losses, and measured against planned memory.
  void end(const Progress &progress, const Machine &machine);
  /// Tables of calls and time. `phases`: wall time of the parts of a step.
  void profile(const Machine &machine, const Profile::Table &phases);

private:
  void header();
  void memory(const Machine &machine);
  void clearLine();

  const Program &program;
  const Options &options;
  bool terminal;
  bool headerPrinted = false;
  bool lineOpen = false; // the cursor stands behind an unfinished line
};

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_REPORT_H
