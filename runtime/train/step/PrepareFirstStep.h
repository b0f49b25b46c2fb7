// SPDX-License-Identifier: Apache-2.0
//
// What a first step would do beside the work of every step.
#ifndef ROTA_RUNTIME_TRAIN_STEP_PREPAREFIRSTSTEP_H
#define ROTA_RUNTIME_TRAIN_STEP_PREPAREFIRSTSTEP_H

#include "runtime/train/rank/Rank.h"

namespace rota {

/// Has physical memory back all that training uses and compiles its products,
/// on all threads that are free. The arenas must be new: the host's tasks of
/// products of experts run on them, and find no rows.
void prepareFirstStep(Rank &rank);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_PREPAREFIRSTSTEP_H
