// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/options/ValidationOptions.h"

namespace rota {

OptionRows validationRows(ValidationOptions &o) {
  const char *group = "Validation";
  using namespace commands;
  return {
      {"eval-data", group, "PATH[:WEIGHT],...",
       "Data to validate on, named as that of 'data', all of which then trains",
       train, &o.data},
      {"eval-fraction", group, "X",
       "Without 'eval-data': the part of the data, from its end, kept "
       "for validation; 0: none",
       train, &o.fraction, 0, 0.9},
      {"eval-interval", group, "N",
       "Steps between validations; 0: after the last step only", train,
       &o.interval, 0, kMaxCount},
      {"eval-steps", group, "N", "Batches in a validation", train, &o.steps, 1,
       kMaxCount},
      {"eval-batch-size", group, "N",
       "Sequences in each of these batches; 0: those of a step", train,
       &o.batchSize, 0, kMaxCount},
      {"target-loss", group, "X",
       "End the run once the validation loss is at most X; 0: never", train,
       &o.targetLoss}};
}

} // namespace rota
