// SPDX-License-Identifier: Apache-2.0
//
// A rank's part of the train state out of a checkpoint, whatever mesh,
// schedule and processes wrote that.
#ifndef ROTA_RUNTIME_TRAIN_STATE_READSTATE_H
#define ROTA_RUNTIME_TRAIN_STATE_READSTATE_H

#include "runtime/checkpoint/CheckpointFiles.h"
#include "runtime/train/rank/Rank.h"

namespace rota {

/// The master copies alone, or the optimizer's states too.
enum class StateExtent { Masters, All };

/// Compares names, shapes and types of the state's tensors with those of the
/// checkpoint. Throws InputError that names the first that differs.
void checkTensors(const Checkpoint &checkpoint, const Program &program,
                  StateExtent extent);

/// Reads the rank's parts of the tensors, which checkTensors has compared, to
/// their places. Compute copies are not written. Throws DamagedCheckpoint; part
/// of the state may have been read then.
void readState(Rank &rank, Checkpoint &checkpoint, StateExtent extent);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STATE_READSTATE_H
