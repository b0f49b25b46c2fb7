// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/options/SkipOptions.h"

namespace rota {

OptionRows skipRows(SkipOptions &o) {
  const char *group = "Optimizer";
  using namespace commands;
  return {{"skip-nonfinite", group, "",
           "A step whose loss or gradient is not finite updates nothing; "
           "without it, such a step ends the run",
           train | Command::Plan, &o.nonfinite},
          {"skip-spikes", group, "X",
           "Skip steps that are not finite, and steps whose loss or gradient "
           "norm is more than X standard deviations above the mean of the "
           "last 128; 0: none",
           train | Command::Plan, &o.spikes}};
}

} // namespace rota
