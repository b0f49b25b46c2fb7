// SPDX-License-Identifier: Apache-2.0
//
// GPU kernels in the object file of a trainer: their launches, and
// their code in every form.
#ifndef ROTA_LOWERING_GPU_TRAINERCODE_H
#define ROTA_LOWERING_GPU_TRAINERCODE_H

#include "lowering/kernels/KernelPlan.h"

namespace llvm {
class Constant;
class Module;
} // namespace llvm

namespace rota::lowering {

/// Defines each kernel that the module of tasks declares as a RotaGpuLaunch of
/// runtime/Abi.h, by the shapes of `library`.
void addGpuLaunches(mlir::ModuleOp tasks, KernelLibrary &library);

/// A RotaGpuCode of runtime/Abi.h. `data` is the initializer of a constant in
/// the trainer's context; its size is that of the code.
struct GpuCode {
  int32_t form = 0;
  int32_t architecture = 0; // 90 for sm_90
  llvm::Constant *data = nullptr;
};

/// PTX for a chip, or what it was assembled to, as such code.
GpuCode gpuCode(llvm::Module &trainer, llvm::StringRef chip, bool isAssembled,
                llvm::StringRef bytes);

/// Defines `rotaGpuCode` and `rotaGpuCodeCount` in `trainer`, the translation
/// of a module of tasks. A trainer for the CPU has no code.
void defineGpuCode(llvm::Module &trainer, llvm::ArrayRef<GpuCode> codes);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_TRAINERCODE_H
