// SPDX-License-Identifier: Apache-2.0
//
// Passes on GPU kernels.
#ifndef ROTA_LOWERING_GPU_PASSES_H
#define ROTA_LOWERING_GPU_PASSES_H

#include "mlir/Pass/Pass.h"

namespace rota::lowering {
#define GEN_PASS_DECL
#include "lowering/gpu/GpuPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lowering/gpu/GpuPasses.h.inc"

/// The pipeline from GPU kernels of gpu, nvvm, scf, vector, arith, math and
/// llvm ops to llvm and nvvm ops alone, with the lines of the source as debug
/// information: registered as `gpu-to-nvvm`.
void buildGpuToNvvmPipeline(mlir::OpPassManager &manager);
void registerGpuPipelines();
} // namespace rota::lowering

#endif // ROTA_LOWERING_GPU_PASSES_H
