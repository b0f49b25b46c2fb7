// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels as optimized LLVM IR, and as PTX text for a chip. The same IR
// serves all chips, and whoever runs kernels without a GPU.
#ifndef ROTA_LOWERING_GPU_NVVMMODULE_H
#define ROTA_LOWERING_GPU_NVVMMODULE_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/ArrayRef.h"
#include <memory>
#include <string>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace rota::lowering {

/// The kernels of `module`, which stays as it is, as LLVM IR that O3 has
/// optimized for NVPTX, in the forms that `chip` has (kWarpgroupForm); where it
/// is empty, in all forms. Kernels have the calling convention `ptx_kernel`;
/// instructions have the lines and columns of the MLIR. Null, with an error at
/// `module`, when an op cannot be lowered or a kernel calls a function that no
/// GPU has: nothing is linked to kernels, libdevice neither.
std::unique_ptr<llvm::Module> translateForGpu(mlir::gpu::GPUModuleOp module,
                                              llvm::LLVMContext &context,
                                              llvm::StringRef chip = "sm_80");

/// The chips that trainers have code for without being asked.
llvm::ArrayRef<llvm::StringRef> trainerChips();
/// An error message for a chip that trainers cannot have code for; empty for
/// others.
std::string unfitForTrainers(llvm::StringRef chip);

/// An error message for a chip that emitPtx does not know; empty for others.
std::string unknownChip(llvm::StringRef name);

/// The PTX text of such a module, which stays as it is, for `chip`: sm_80,
/// sm_90 or sm_100, with or without the letter of a chip's own instructions.
/// sm_90a has kernels in the form for warpgroups, where there is one.
/// The text has no debug information, because ptxas optimizes little where
/// there is some. An error at `loc` when the chip is another one.
llvm::FailureOr<std::string>
emitPtx(mlir::Location loc, const llvm::Module &module, llvm::StringRef chip);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_NVVMMODULE_H
