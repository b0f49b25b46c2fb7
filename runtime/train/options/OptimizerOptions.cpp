// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/options/OptimizerOptions.h"
#include "runtime/text/Text.h"

namespace rota {

OptionRows optimizerRows(OptimizerOptions &o) {
  const char *group = "Optimizer";
  using namespace commands;
  OptionRows rows = {
      {"learning-rate", group, "X", "Peak learning rate", runs,
       &o.learningRate},
      {"learning-rate-schedule", group, "NAME",
       "The rate after the warm-up: the peak (constant); falling to the "
       "minimum "
       "in a line (linear) or half a cosine (cosine); or at the peak until a "
       "last share of the steps falls in a line (wsd)",
       train, Choice(o.schedule)},
      {"min-learning-rate", group, "X",
       "The rate that the schedule falls to: that of a step after the last one",
       train, &o.minLearningRate},
      {"decay-share", group, "X",
       "The share of all steps, at their end, in which 'wsd' falls", train,
       &o.decayShare, 0, 1},
      {"warmup-steps", group, "N",
       "Warm-up: step t of N has the rate peak * t / N", runs, &o.warmupSteps,
       0, kMaxCount}};
  for (ProgramOption &own : o.own) {
    Option row{own.name, group, "X", own.help, models, &own.value, own.least};
    if (own.most < kUnbounded)
      row.maximum = own.most;
    rows.push_back(row);
  }
  rows.push_back({"gradient-clip", group, "X",
                  "Largest global norm of the gradient; 0: no clipping",
                  runs | Command::Plan, &o.gradientClip});
  return rows;
}

OptionMistake checkOptimizerOptions(const OptimizerOptions &o) {
  if (o.minLearningRate > o.learningRate)
    return {"min-learning-rate", "expected at most 'learning-rate', got " +
                                     numberText(o.minLearningRate) + " and " +
                                     numberText(o.learningRate)};
  if (o.postValidate && !(o.gradientClip > 0.0))
    return {"post-validate", "expected a 'gradient-clip' above 0 beside it, "
                             "got " +
                                 numberText(o.gradientClip)};
  return {};
}

} // namespace rota
