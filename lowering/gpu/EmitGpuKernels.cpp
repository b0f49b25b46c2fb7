// SPDX-License-Identifier: Apache-2.0
//
// Shows the GPU kernels of a module.
#include "lowering/gpu/GpuEmitters.h"
#include "lowering/gpu/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace rota::lowering {
#define GEN_PASS_DEF_EMITGPUKERNELS
#include "lowering/gpu/GpuPasses.h.inc"

namespace {
struct EmitGpuKernels : impl::EmitGpuKernelsBase<EmitGpuKernels> {
  void runOnOperation() override {
    KernelLibrary library(&getContext(), gpuTarget());
    if (failed(replaceByKernels(getOperation(), library)))
      signalPassFailure();
  }
};
} // namespace
} // namespace rota::lowering
