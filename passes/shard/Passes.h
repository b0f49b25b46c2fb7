// SPDX-License-Identifier: Apache-2.0
//
// Shardings: from tensor functions of one imaginary device to those of each
// rank of a mesh.
#ifndef ROTA_PASSES_SHARD_PASSES_H
#define ROTA_PASSES_SHARD_PASSES_H

#include "ir/rota/Rota.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::rota {

#define GEN_PASS_DECL
#include "passes/shard/Passes.h.inc"

/// Makes the passes of this folder known to tools.
void registerShardPasses();

} // namespace mlir::rota

#endif // ROTA_PASSES_SHARD_PASSES_H
