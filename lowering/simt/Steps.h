// SPDX-License-Identifier: Apache-2.0
//
// The steps from a copy of a module for NVPTX to one for the host, in their
// order. Each changes the module in place.
#ifndef ROTA_LOWERING_SIMT_STEPS_H
#define ROTA_LOWERING_SIMT_STEPS_H

#include "lowering/simt/ServiceCalls.h"
#include "mlir/IR/Location.h"

namespace rota::lowering {

/// Shared memory of each kernel: bytes of fixed size, and then the offset where
/// memory whose size the launch gives begins.
using SharedSizes = llvm::DenseMap<llvm::Function *, uint64_t>;

/// Puts a check in front of each access of memory that is not the thread's own.
void addChecks(llvm::Function &function, ServiceCalls &services);

/// Metadata of a load of a product of a warpgroup.
inline constexpr llvm::StringRef kProductRead = "rota.product_read";

/// Replaces assembly by loads and intrinsics of NVPTX and, where `checks` is
/// not null, by checks of its waits. Comes before the checks of accesses.
llvm::LogicalResult expandAssembly(mlir::Location loc, llvm::Function &function,
                                   ServiceCalls *checks);

/// Replaces the intrinsics of NVPTX by calls of services.
llvm::LogicalResult emulateIntrinsics(mlir::Location loc,
                                      llvm::Function &function,
                                      ServiceCalls &services);

/// Replaces floating-point operations whose bits differ between hosts: bf16 in
/// f32, rounded to nearest even by integer arithmetic (NaN becomes 0x7FFF, as
/// on NVIDIA's GPUs); no fast-math flags; fmuladd is fma. No value of type bf16
/// is left.
llvm::LogicalResult fixArithmetic(mlir::Location loc, llvm::Function &function);

/// Replaces global variables in shared memory by addresses in the block's
/// shared memory.
llvm::FailureOr<SharedSizes> placeSharedMemory(mlir::Location loc,
                                               llvm::Module &module,
                                               ServiceCalls &services);

/// Error at an instruction of a function that has no emulation.
llvm::LogicalResult unknownInstruction(mlir::Location loc,
                                       const llvm::Instruction &instruction,
                                       llvm::StringRef name);

} // namespace rota::lowering

#endif // ROTA_LOWERING_SIMT_STEPS_H
