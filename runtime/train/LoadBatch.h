// SPDX-License-Identifier: Apache-2.0
//
// Batches on their way to the places that tasks read.
#ifndef ROTA_RUNTIME_TRAIN_LOADBATCH_H
#define ROTA_RUNTIME_TRAIN_LOADBATCH_H

#include "runtime/data/Batches.h"
#include "runtime/train/Rank.h"

namespace rota {

/// Writes the rank's parts of a batch to the places that its stage's tasks
/// read.
void loadBatch(Rank &rank, const Batches &batches, Split split, int64_t batch);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_LOADBATCH_H
