// SPDX-License-Identifier: Apache-2.0
//
// The functions that update parameters, as tasks.
#ifndef ROTA_LOWERING_EXECUTABLE_UPDATES_H
#define ROTA_LOWERING_EXECUTABLE_UPDATES_H

#include "ir/rota/model/Model.h"
#include "lowering/executable/Buffers.h"

namespace rota::lowering {

/// Lowers a function to a task of its name; returns the task's number.
using LowerTask = llvm::function_ref<llvm::FailureOr<int>(
    mlir::func::FuncOp, const FunctionAddresses &)>;

/// Lowers the update functions of `model` and those of squares, each once, and
/// fills in states and tasks of the parameters of `program` and what updates
/// read: its scalars and options. Parameters without an update stay without
/// tasks.
llvm::LogicalResult lowerUpdates(const mlir::rota::Model &model,
                                 Program &program, LowerTask lower);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_UPDATES_H
