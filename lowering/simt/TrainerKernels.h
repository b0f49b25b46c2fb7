// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels of a trainer that runs them on the emulator.
#ifndef ROTA_LOWERING_SIMT_TRAINERKERNELS_H
#define ROTA_LOWERING_SIMT_TRAINERKERNELS_H

#include "lowering/gpu/TrainerCode.h"
#include "lowering/simt/HostKernels.h"

namespace rota::lowering {

/// Adds the kernels of `gpu` to `trainer`, both of one context, as code for
/// `host`. The result is the one RotaGpuCode of such a trainer: the addresses
/// of the descriptions of all kernels, in their order. The functions `@k` are
/// internal, because the trainer has launches by the names of kernels.
llvm::FailureOr<GpuCode> linkHostKernels(mlir::Location loc,
                                         llvm::Module &trainer,
                                         const llvm::Module &gpu,
                                         const llvm::TargetMachine &host,
                                         const HostKernelOptions &options);

} // namespace rota::lowering

#endif // ROTA_LOWERING_SIMT_TRAINERKERNELS_H
