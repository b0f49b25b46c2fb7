// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels that the runtime launches by itself. Their LLVM IR, which the
// build makes of lowering/gpu/services, is part of the compiler.
#ifndef ROTA_LOWERING_GPU_SERVICEKERNELS_H
#define ROTA_LOWERING_GPU_SERVICEKERNELS_H

#include "lowering/gpu/NvvmModule.h"
#include "llvm/IR/Module.h"

namespace rota::lowering {

/// Adds the kernels of runtime/device/cuda/ServiceKernels.h to a module that
/// translateForGpu has made. An error at `loc` when it has a symbol of one of
/// their names.
llvm::LogicalResult linkServiceKernels(mlir::Location loc,
                                       llvm::Module &kernels);

/// translateForGpu with the kernels of the runtime: what a trainer has. Null
/// after an error.
std::unique_ptr<llvm::Module>
translateTrainerKernels(mlir::gpu::GPUModuleOp source,
                        llvm::LLVMContext &context, llvm::StringRef chip);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_SERVICEKERNELS_H
