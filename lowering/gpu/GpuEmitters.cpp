// SPDX-License-Identifier: Apache-2.0
//
// The files of GPU kernels: one line each.
#include "lowering/gpu/GpuEmitters.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace rota::lowering {

using AddEmitters = void(KernelEmitters &emitters);
AddEmitters addAccumulateEmitters, addExpertRowsEmitters,
    addCrossEntropyEmitters, addCrossEntropyPairEmitters,
    addGpuAttentionEmitters, addGpuAttentionGradEmitters,
    addGpuDispatchEmitters, addGpuEmbeddingEmitters,
    addGpuGroupedProductEmitters, addGpuLaunchEmitters, addGroupedBiasEmitters,
    addRopeEmitters, addRoutingEmitters, addSplitEmitters;

KernelEmitters gpuEmitters() {
  KernelEmitters emitters;
  for (AddEmitters *add :
       {addAccumulateEmitters, addExpertRowsEmitters, addGpuAttentionEmitters,
        addGpuAttentionGradEmitters, addCrossEntropyEmitters,
        addCrossEntropyPairEmitters, addGpuDispatchEmitters,
        addGpuEmbeddingEmitters, addGpuGroupedProductEmitters,
        addGpuLaunchEmitters, addGroupedBiasEmitters, addRopeEmitters,
        addRoutingEmitters, addSplitEmitters})
    add(emitters);
  return emitters;
}

gpu::GPUModuleOp gpuModuleOf(KernelLibrary &library) {
  ModuleOp module = library.getModule();
  auto modules = module.getOps<gpu::GPUModuleOp>();
  if (!modules.empty())
    return *modules.begin();
  module.getContext()->loadDialect<gpu::GPUDialect, NVVM::NVVMDialect>();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  return gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
}

} // namespace rota::lowering
