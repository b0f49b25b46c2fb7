// SPDX-License-Identifier: Apache-2.0
//
// The options of the optimizer and of the learning rate.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_OPTIMIZEROPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_OPTIMIZEROPTIONS_H

#include "runtime/program/Parameter.h"
#include "runtime/train/options/OptionRows.h"

namespace rota {

/// learningRateAt of LearningRate.h says what each of them is.
enum class LearningRateSchedule { Constant, Linear, Cosine, WSD };
template <> struct Names<LearningRateSchedule> {
  static constexpr const char *list[] = {"constant", "linear", "cosine", "wsd"};
};

struct OptimizerOptions {
  double learningRate = 3e-4; // the peak
  double minLearningRate = 0.0;
  LearningRateSchedule schedule = LearningRateSchedule::Cosine;
  double decayShare = 0.1;   // share of all steps; WSD alone
  double gradientClip = 1.0; // largest global norm; 0: no clipping
  bool postValidate = false; // updates do not wait for the norm
  int64_t warmupSteps = 0;
  // The optimizer's own, with their values: Program::options.
  std::vector<ProgramOption> own;
};

/// Rows of the optimizer's options, with the variables of `options`.
OptionRows optimizerRows(OptimizerOptions &options);
OptionMistake checkOptimizerOptions(const OptimizerOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_OPTIMIZEROPTIONS_H
