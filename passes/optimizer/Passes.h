// SPDX-License-Identifier: Apache-2.0
//
// The optimizer: from placed parameters to functions that update them.
#ifndef ROTA_PASSES_OPTIMIZER_PASSES_H
#define ROTA_PASSES_OPTIMIZER_PASSES_H

#include "ir/rota/Rota.h"
#include "mlir/Pass/Pass.h"

namespace mlir::rota {

#define GEN_PASS_DECL
#include "passes/optimizer/Passes.h.inc"

/// Makes the passes of this folder known to tools.
void registerOptimizerPasses();

} // namespace mlir::rota

#endif // ROTA_PASSES_OPTIMIZER_PASSES_H
