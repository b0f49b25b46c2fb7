// SPDX-License-Identifier: Apache-2.0
//
// The order of the sharding passes.
#include "passes/shard/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/shard/Passes.h.inc"
} // namespace

void rota::registerShardPasses() { registerRotaShardPasses(); }
