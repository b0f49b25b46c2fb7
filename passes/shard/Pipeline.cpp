// SPDX-License-Identifier: Apache-2.0
//
// The order of the sharding passes.
#include "passes/Registration.h"
#include "passes/shard/Passes.h"

#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::rota;

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/shard/Passes.h.inc"
} // namespace

void mlir::rota::buildShardPipeline(OpPassManager &manager,
                                    const ShardPipelineOptions &options) {
  AssignShardingsOptions placements = options;
  placements.divisionMode = options.mode;
  manager.addPass(createAssignShardings(placements));
  manager.addPass(createBuildUpdates(options));
  manager.addPass(createChooseContextExchange(options));
  PropagateShardingsOptions propagation;
  propagation.divisionMode = options.mode;
  manager.addPass(createPropagateShardings(propagation));
  InsertReshardsOptions reshards = options;
  reshards.gatherRules = options.rules;
  manager.addPass(createInsertReshards(reshards));
  manager.addPass(createCountWork());
  manager.addPass(createPartition());
  // Two ops may ask for the same offset or gather the same value.
  manager.addPass(createCSEPass());
  manager.addPass(createMergeCollectives());
  manager.addPass(createSplitCollectives(options));
  manager.addPass(createScheduleCollectives());
  manager.addPass(createVerifyPartitioned());
}

void mlir::rota::registerShardPasses() {
  registerRotaShardPasses();
  ::rota::registerPipeline(
      "shard", "From a differentiated model to the functions of one rank",
      [](OpPassManager &manager) { buildShardPipeline(manager, {}); });
}
