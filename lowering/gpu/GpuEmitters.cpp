// SPDX-License-Identifier: Apache-2.0
//
// The files of GPU kernels: one line each.
#include "lowering/gpu/GpuEmitters.h"

namespace rota::lowering {

using AddEmitters = void(KernelEmitters &emitters);
AddEmitters addGpuAccumulateEmitters, addGpuAttentionEmitters,
    addGpuAttentionGradEmitters, addGpuCrossEntropyEmitters,
    addGpuEmbeddingEmitters, addGpuLaunchEmitters, addGpuRopeEmitters;

KernelEmitters gpuEmitters() {
  KernelEmitters emitters;
  for (AddEmitters *add :
       {addGpuAccumulateEmitters, addGpuAttentionEmitters,
        addGpuAttentionGradEmitters, addGpuCrossEntropyEmitters,
        addGpuEmbeddingEmitters, addGpuLaunchEmitters, addGpuRopeEmitters})
    add(emitters);
  return emitters;
}

mlir::gpu::GPUModuleOp gpuModuleOf(KernelLibrary &library) {
  auto modules = library.getModule().getOps<mlir::gpu::GPUModuleOp>();
  return modules.empty() ? mlir::gpu::GPUModuleOp() : *modules.begin();
}

} // namespace rota::lowering
