// SPDX-License-Identifier: Apache-2.0
//
// The phase as two pipelines. The first runs on the model as built: later
// phases read from the timeline which layers a stage has and whether backwards
// are split. The second needs what they made.
#include "passes/Registration.h"
#include "passes/pipeline/Passes.h"

namespace mlir::pipe {

void buildScheduleLayersPipeline(OpPassManager &manager,
                                 const ScheduleLayersOptions &options) {
  manager.addPass(createSplitStages(options));
  manager.addPass(createMakeTimeline(options));
  manager.addPass(createVerifyTimeline());
  manager.addPass(createBalanceStages({options.split}));
}

void buildCompleteTimelinePipeline(OpPassManager &manager,
                                   const CompleteTimelineOptions &options) {
  manager.addPass(createDivideChunks({options.mode}));
  manager.addPass(createInsertCommunication());
  manager.addPass(createOffloadResiduals(options));
  manager.addPass(createGatherWeights(options));
  manager.addPass(createExchangeUpdates());

  VerifyTimelineOptions verify;
  verify.communication = true;
  manager.addPass(createVerifyTimeline(verify));
}

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/pipeline/Passes.h.inc"
} // namespace

void registerPipelinePasses() {
  registerTimelinePasses();
  ::rota::registerPipeline(
      "schedule-layers",
      "From a model as built to a verified timeline of compute actions",
      [](OpPassManager &manager) { buildScheduleLayersPipeline(manager, {}); });
  ::rota::registerPipeline(
      "complete-timeline",
      "From compute actions to a verified timeline with communication",
      [](OpPassManager &manager) {
        buildCompleteTimelinePipeline(manager, {});
      });
}

} // namespace mlir::pipe
