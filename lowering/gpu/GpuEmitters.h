// SPDX-License-Identifier: Apache-2.0
//
// The GPU as a target of kernels. A kernel is a `gpu.func` in the one
// `gpu.module` of the library; its arguments are the pointers of
// KernelCall::arguments, in that order. Sizes are constants in its code, and
// its threads are the LaunchShape of its symbol.
#ifndef ROTA_LOWERING_GPU_GPUEMITTERS_H
#define ROTA_LOWERING_GPU_GPUEMITTERS_H

#include "lowering/kernels/KernelPlan.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace rota::lowering {

/// The emitters of GPU kernels. Neither the code nor the bits of its results
/// depend on the GPU.
KernelEmitters gpuEmitters();

EmitRows emitGpuRows;
EmitSums emitGpuSums;
inline KernelTarget gpuTarget() {
  return {gpuEmitters(), emitGpuRows, /*vectorBits=*/0, emitGpuSums};
}

/// The GPU kernels of a library, in a module that is made by the first call.
mlir::gpu::GPUModuleOp gpuModuleOf(KernelLibrary &library);

} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_GPUEMITTERS_H
