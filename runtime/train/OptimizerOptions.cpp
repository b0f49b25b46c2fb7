// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/OptimizerOptions.h"

namespace rota {

OptionRows optimizerRows(OptimizerOptions &o) {
  const char *group = "Optimizer";
  using namespace commands;
  OptionRows rows = {
      {"learning-rate", group, "X", "Peak learning rate", runs,
       &o.learningRate},
      {"min-learning-rate", group, "X",
       "After N warm-up steps of T, step t has the rate min + (peak - min) * "
       "(1 + cos(pi * (t - N - 1) / (T - N))) / 2",
       train, &o.minLearningRate},
      {"warmup-steps", group, "N",
       "Warm-up: step t of N has the rate peak * t / N", runs, &o.warmupSteps,
       0, kMaxCount}};
  for (ProgramOption &own : o.own) {
    Option row{own.name, group, "X", own.help, runs, &own.value, own.least};
    if (own.most < kUnbounded)
      row.maximum = own.most;
    rows.push_back(row);
  }
  rows.push_back({"gradient-clip", group, "X",
                  "Largest global norm of the gradient; 0: no clipping", runs,
                  &o.gradientClip});
  return rows;
}

OptionMistake checkOptimizerOptions(const OptimizerOptions &o) {
  if (o.minLearningRate > o.learningRate)
    return {"min-learning-rate", "expected at most 'learning-rate', got " +
                                     numberText(o.minLearningRate) + " and " +
                                     numberText(o.learningRate)};
  return {};
}

} // namespace rota
