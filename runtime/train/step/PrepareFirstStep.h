// SPDX-License-Identifier: Apache-2.0
//
// What a first step would do beside the work of every step.
#ifndef ROTA_RUNTIME_TRAIN_STEP_PREPAREFIRSTSTEP_H
#define ROTA_RUNTIME_TRAIN_STEP_PREPAREFIRSTSTEP_H

#include "runtime/train/rank/Rank.h"

namespace rota {

/// Has physical memory back all that training uses and makes its tasks ready
/// (Device::prepareTasks), on all threads that are free. The arenas must be
/// new: the host's tasks of products of experts run on them, and find no rows.
void prepareFirstStep(Rank &rank);

/// What a run that is no training needs of it: a GPU opens its libraries, and
/// loads code, before the first transfer.
void prepareGpu(Rank &rank);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_PREPAREFIRSTSTEP_H
