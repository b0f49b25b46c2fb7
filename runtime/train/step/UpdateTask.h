// SPDX-License-Identifier: Apache-2.0
//
// Runs the tasks that a parameter has for the end of a step.
#ifndef ROTA_RUNTIME_TRAIN_STEP_UPDATETASK_H
#define ROTA_RUNTIME_TRAIN_STEP_UPDATETASK_H

#include "runtime/train/rank/Rank.h"

namespace rota {

/// What Parameter::updateTask or squareTask of one tensor gets; `output`: an
/// offset in the arena.
RotaFrame updateFrame(Rank &rank, const Update &update, int64_t output);

/// Runs Parameter::updateTask or squareTask of one tensor in its frame. The
/// calling thread holds a core, for all tensors: where ranks outnumber the
/// cores, one that gives it back gets it again only when others had their turn.
/// Throws RunError that names the tensor when the task fails.
void runUpdateTask(Rank &rank, int task, const Update &update, int64_t output);

} // namespace rota

#endif // ROTA_RUNTIME_TRAIN_STEP_UPDATETASK_H
