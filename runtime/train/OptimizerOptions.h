// SPDX-License-Identifier: Apache-2.0
//
// The options of the optimizer and of the learning rate.
#ifndef ROTA_RUNTIME_TRAIN_OPTIMIZEROPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIMIZEROPTIONS_H

#include "runtime/program/Program.h"
#include "runtime/train/OptionRows.h"

namespace rota {

struct OptimizerOptions {
  double learningRate = 3e-4; // the peak
  double minLearningRate = 0.0;
  double gradientClip = 1.0; // largest global norm; 0: no clipping
  int64_t warmupSteps = 0;
  // The optimizer's own, with their values: Program::options.
  std::vector<ProgramOption> own;
};

/// Of the optimizer's own options it has those in `options`.
OptionRows optimizerRows(OptimizerOptions &options);
OptionMistake checkOptimizerOptions(const OptimizerOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIMIZEROPTIONS_H
