// SPDX-License-Identifier: Apache-2.0
//
// The code of a trainer: tasks, kernels and the program's description.
#ifndef ROTA_LOWERING_EXECUTABLE_TRAINER_H
#define ROTA_LOWERING_EXECUTABLE_TRAINER_H

#include "lowering/executable/Tasks.h"

namespace rota::lowering {

/// Moves the CPU kernels of `library`, lowered to llvm ops, into the module of
/// tasks, where they are declared. The library is empty afterwards.
llvm::LogicalResult addCpuKernels(mlir::ModuleOp tasks, KernelLibrary &library);

/// Adds the program's data that runtime/Abi.h declares, `program` among it as
/// bytes. The code of GPU kernels is not there yet.
void addProgramData(mlir::ModuleOp tasks, const Program &program);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_TRAINER_H
