// SPDX-License-Identifier: Apache-2.0
//
// The code of a trainer: tasks, kernels and the program's description.
#ifndef ROTA_LOWERING_EXECUTABLE_TRAINER_H
#define ROTA_LOWERING_EXECUTABLE_TRAINER_H

#include "lowering/executable/Tasks.h"

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace rota::lowering {

/// Moves the CPU kernels of `library`, lowered to llvm ops, into the module of
/// tasks, where they are declared. The library is empty afterwards.
llvm::LogicalResult addCpuKernels(mlir::ModuleOp tasks, KernelLibrary &library);

/// Adds the program's data that runtime/Abi.h and runtime/ProcessorAbi.h
/// declare, `program` among it as bytes, to the code of its tasks and kernels,
/// which is made for `machine`.
void addProgramData(llvm::Module &code, const Program &program,
                    const llvm::TargetMachine &machine);

/// The same data as an object file of its own, beside one with the code. Errors
/// are at `loc`.
llvm::FailureOr<std::string> emitProgramData(mlir::Location loc,
                                             const Program &program,
                                             llvm::TargetMachine &machine);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_TRAINER_H
