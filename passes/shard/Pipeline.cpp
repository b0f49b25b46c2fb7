// SPDX-License-Identifier: Apache-2.0
//
// The order of the sharding passes.
#include "passes/optimizer/Passes.h"
#include "passes/shard/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/shard/Passes.h.inc"
} // namespace

void rota::buildShardPipeline(OpPassManager &manager,
                              const ShardPipelineOptions &options) {
  AssignShardingsOptions assign;
  assign.meshText = options.mesh;
  assign.ranks = options.ranks;
  assign.rules = options.rules;
  assign.shardOptimizer = options.shardOptimizer;
  manager.addPass(createAssignShardings(assign));
  manager.addPass(createBuildUpdates({options.optimizer.getValue()}));
  manager.addPass(createPropagateShardings());
  InsertReshardsOptions insert;
  insert.mode = options.mode;
  insert.rules = options.rules;
  manager.addPass(createInsertReshards(insert));
  manager.addPass(createPartition());
  // Two ops may ask for the same offset or gather the same value.
  manager.addPass(createCSEPass());
  manager.addPass(createMergeCollectives());
  manager.addPass(createVerifyPartitioned());
}

void rota::registerShardPasses() {
  registerRotaShardPasses();
  PassPipelineRegistration<ShardPipelineOptions>(
      "shard", "From a differentiated model to the functions of one rank",
      buildShardPipeline);
}
