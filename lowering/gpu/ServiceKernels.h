// SPDX-License-Identifier: Apache-2.0
//
// The GPU kernels that the runtime launches by itself. Their text,
// lowering/gpu/*-services.mlir, is part of the compiler.
#ifndef ROTA_LOWERING_GPU_SERVICEKERNELS_H
#define ROTA_LOWERING_GPU_SERVICEKERNELS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace rota::lowering {

/// Adds the kernels of runtime/device/cuda/ServiceKernels.h to the end of
/// `module`, with what they need. An error at `module` when it has a symbol of
/// one of their names. Loads dialects: not for a pass that runs on a part of
/// the IR.
llvm::LogicalResult addServiceKernels(mlir::gpu::GPUModuleOp module);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_SERVICEKERNELS_H
