// SPDX-License-Identifier: Apache-2.0
//
// The object file of a trainer: tasks, kernels and the program's description.
#ifndef ROTA_LOWERING_EXECUTABLE_TRAINER_H
#define ROTA_LOWERING_EXECUTABLE_TRAINER_H

#include "lowering/executable/Tasks.h"

namespace rota::lowering {

/// Turns `tasks` into the module of a trainer, llvm ops alone: moves the
/// kernels of `library` into it, lowered, and adds the data that runtime/Abi.h
/// declares, `program` among it as bytes. The library is empty afterwards.
llvm::LogicalResult buildTrainer(mlir::ModuleOp tasks, KernelLibrary &library,
                                 const Program &program);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_TRAINER_H
