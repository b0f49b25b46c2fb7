// SPDX-License-Identifier: Apache-2.0
//
// Passes from composite ops to fused kernels.
#ifndef ROTA_LOWERING_KERNELS_PASSES_H
#define ROTA_LOWERING_KERNELS_PASSES_H

#include "ir/rota/Rota.h"
#include "mlir/Pass/Pass.h"

namespace rota::lowering {
#define GEN_PASS_DECL
#include "lowering/kernels/KernelPasses.h.inc"
#define GEN_PASS_REGISTRATION
#include "lowering/kernels/KernelPasses.h.inc"
} // namespace rota::lowering

#endif // ROTA_LOWERING_KERNELS_PASSES_H
