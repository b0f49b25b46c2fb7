// SPDX-License-Identifier: Apache-2.0
//
// Ops that only CPUs have code for.
#ifndef ROTA_LOWERING_KERNELS_DEVICECHECK_H
#define ROTA_LOWERING_KERNELS_DEVICECHECK_H

#include "lowering/kernels/KernelPlan.h"

namespace rota::lowering {

/// Fails with an error at `op` where `library` is for GPUs.
inline llvm::LogicalResult requireCpu(mlir::Operation *op,
                                      const KernelLibrary &library) {
  if (library.getVectorBits() != 0)
    return llvm::success();
  return op->emitOpError("is not supported on GPUs yet");
}

} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_DEVICECHECK_H
