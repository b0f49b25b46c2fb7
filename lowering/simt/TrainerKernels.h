// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels of a trainer that runs them on the emulator.
#ifndef ROTA_LOWERING_SIMT_TRAINERKERNELS_H
#define ROTA_LOWERING_SIMT_TRAINERKERNELS_H

#include "lowering/gpu/TrainerCode.h"
#include "lowering/simt/HostKernels.h"

#include "llvm/ADT/SmallVector.h"

namespace rota::lowering {

/// The names of the kernels of a module that is translated for GPUs.
llvm::SmallVector<std::string> kernelsOf(const llvm::Module &gpu);

/// Makes the functions `@k` of makeHostKernels internal: a trainer has launches
/// by the names of kernels.
void hideEntries(llvm::Module &code, llvm::ArrayRef<std::string> kernels);

/// The one RotaGpuCode of a trainer for the emulator: the addresses of the
/// descriptions of `kernels`, which are declared where `trainer` does not have
/// them.
GpuCode hostCode(llvm::Module &trainer, llvm::ArrayRef<std::string> kernels);

/// Adds the kernels of `gpu` to `trainer`, both of one context, as code for
/// `host`. The result has all of them, in their order.
llvm::FailureOr<GpuCode> linkHostKernels(mlir::Location loc,
                                         llvm::Module &trainer,
                                         const llvm::Module &gpu,
                                         const llvm::TargetMachine &host,
                                         const HostKernelOptions &options);

} // namespace rota::lowering

#endif // ROTA_LOWERING_SIMT_TRAINERKERNELS_H
