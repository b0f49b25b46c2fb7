// SPDX-License-Identifier: Apache-2.0
//
// The order of the sharding passes.
#include "passes/shard/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/shard/Passes.h.inc"

struct ShardText : ::rota::PipelineText<ShardPipelineOptions> {
  ShardText() {
    add("mesh", meshText);
    add("ranks", ranks);
    add("rules", rules);
    add("shard-optimizer", shardOptimizer);
    add("optimizer", updates.optimizer);
    add("state-dtype", updates.stateDtype);
    add("nesterov", updates.nesterov);
    add("muon-dtype", updates.muonDtype);
    add("muon-scale", updates.muonScale);
    add("groups", updates.groups);
    add("values", updates.values);
    add("mode", mode);
    add("context-exchange", contextExchange);
  }
};
} // namespace

ShardPipelineOptions::ShardPipelineOptions() { updates.optimizer.clear(); }

void mlir::rota::buildShardPipeline(OpPassManager &manager,
                                    const ShardPipelineOptions &options) {
  manager.addPass(createAssignShardings(options));
  manager.addPass(createBuildUpdates(options.updates));
  manager.addPass(createChooseContextExchange({options.contextExchange}));
  manager.addPass(createPropagateShardings());
  manager.addPass(createInsertReshards({options.mode, options.rules}));
  manager.addPass(createPartition());
  // Two ops may ask for the same offset or gather the same value.
  manager.addPass(createCSEPass());
  manager.addPass(createMergeCollectives());
  manager.addPass(createVerifyPartitioned());
}

void mlir::rota::registerShardPasses() {
  registerRotaShardPasses();
  PassPipelineRegistration<ShardText>(
      "shard", "From a differentiated model to the functions of one rank",
      buildShardPipeline);
}
