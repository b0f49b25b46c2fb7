// SPDX-License-Identifier: Apache-2.0
//
// Passes from vector code to LLVM's dialect.
#ifndef ROTA_LOWERING_CPU_PASSES_H
#define ROTA_LOWERING_CPU_PASSES_H

#include "mlir/Pass/Pass.h"

namespace rota::lowering {
#define GEN_PASS_DECL
#include "lowering/cpu/CpuPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lowering/cpu/CpuPasses.h.inc"

/// The pipeline from func, scf, vector, arith, math and llvm ops to llvm ops
/// alone: registered as `cpu-to-llvm`.
void buildCpuToLLVMPipeline(mlir::OpPassManager &manager);
void registerCpuPipelines();
} // namespace rota::lowering

#endif // ROTA_LOWERING_CPU_PASSES_H
