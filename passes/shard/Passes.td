//===- Passes.td - Shardings and partitioning --------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0
//
// The passes that say where each tensor lives and make the ranks' local
// functions, with the collectives between them.
//===----------------------------------------------------------------------===//
#ifndef ROTA_PASSES_SHARD_PASSES
#define ROTA_PASSES_SHARD_PASSES

include "mlir/Pass/PassBase.td"

#endif // ROTA_PASSES_SHARD_PASSES
