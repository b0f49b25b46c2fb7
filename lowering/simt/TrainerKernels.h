// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels of a trainer that runs them on the emulator.
#ifndef ROTA_LOWERING_SIMT_TRAINERKERNELS_H
#define ROTA_LOWERING_SIMT_TRAINERKERNELS_H

#include "lowering/kernels/KernelPlan.h"
#include "lowering/simt/HostKernels.h"

namespace rota::lowering {

/// Defines each kernel that the module of tasks declares as a RotaSimtLaunch of
/// runtime/device/simt/SimtDevice.h, by the shapes of `library`.
void addSimtLaunches(mlir::ModuleOp tasks, KernelLibrary &library);

/// Adds the code of the library's GPU kernels to `trainer`, the translation of
/// such a module for `host`.
llvm::LogicalResult linkSimtKernels(llvm::Module &trainer,
                                    KernelLibrary &library,
                                    const llvm::TargetMachine &host,
                                    const HostKernelOptions &options);

} // namespace rota::lowering

#endif // ROTA_LOWERING_SIMT_TRAINERKERNELS_H
