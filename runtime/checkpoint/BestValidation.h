// SPDX-License-Identifier: Apache-2.0
//
// The best validation of a run, as its checkpoints keep it.
#ifndef ROTA_RUNTIME_CHECKPOINT_BESTVALIDATION_H
#define ROTA_RUNTIME_CHECKPOINT_BESTVALIDATION_H

#include "runtime/checkpoint/Manifest.h"

#include <optional>

namespace rota {

/// The least validation loss so far, and the step that it followed.
struct BestValidation {
  double loss = 0.0;
  int64_t step = 0;
};

/// The best validation of a run; nothing where it has not validated. Throws
/// InputError when the value is not a loss and a step.
std::optional<BestValidation> bestValidation(const RunState &state);
void setBestValidation(RunState &state, const BestValidation &best);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_BESTVALIDATION_H
