// SPDX-License-Identifier: Apache-2.0
//
// The options of validation: its data, when it happens, and what follows.
#ifndef ROTA_RUNTIME_TRAIN_OPTIONS_VALIDATIONOPTIONS_H
#define ROTA_RUNTIME_TRAIN_OPTIONS_VALIDATIONOPTIONS_H

#include "runtime/train/options/OptionRows.h"

namespace rota {

struct ValidationOptions {
  std::vector<std::string> data; // none: a part of the training data
  double fraction = 0.05;        // share of each source, where `data` is empty
  int64_t interval = 100;        // steps; 0: after the last one alone
  int64_t steps = 4;             // batches of a validation
  int64_t batchSize = 0;         // sequences of each; 0: those of a step
  double targetLoss = 0.0;       // ends the run; 0: none

  bool hasData() const { return !data.empty() || fraction > 0.0; }
  /// The part of each source of the training data that does not train.
  double heldFraction() const { return data.empty() ? fraction : 0.0; }
};

OptionRows validationRows(ValidationOptions &options);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_OPTIONS_VALIDATIONOPTIONS_H
