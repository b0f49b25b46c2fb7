// SPDX-License-Identifier: Apache-2.0
//
// The options that say which steps update nothing.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_SKIPOPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_SKIPOPTIONS_H

#include "runtime/train/options/OptionRows.h"

namespace rota {

struct SkipOptions {
  bool nonfinite = false;
  double spikes = 0.0; // in standard deviations; 0: none

  /// Whether a step may be skipped. Where spikes are, steps that are not finite
  /// are too.
  bool isOn() const { return nonfinite || spikes > 0.0; }
};

OptionRows skipRows(SkipOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_SKIPOPTIONS_H
