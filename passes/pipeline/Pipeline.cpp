// SPDX-License-Identifier: Apache-2.0
//
// The phase as two pipelines. The first runs on the model as built: later
// phases read from the timeline which layers a stage has and whether backwards
// are split. The second needs what they made.
#include "passes/pipeline/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace mlir::pipe {

void buildScheduleLayersPipeline(OpPassManager &manager,
                                 const ScheduleLayersOptions &options) {
  SplitStagesOptions split;
  split.stages = options.stages;
  split.repeats = options.repeats;
  split.layersPerChunk = options.layersPerChunk;
  split.microbatches = options.microbatches;
  split.pipelineLayers = options.pipelineLayers;
  split.placement = options.placement;
  manager.addPass(createSplitStages(split));

  MakeTimelineOptions timeline;
  timeline.schedule = options.schedule;
  timeline.delay = options.delay;
  timeline.splitBackward = options.splitBackward;
  manager.addPass(createMakeTimeline(timeline));
  manager.addPass(createVerifyTimeline());
}

void buildCompleteTimelinePipeline(OpPassManager &manager,
                                   const CompleteTimelineOptions &options) {
  manager.addPass(createInsertCommunication());
  OffloadResidualsOptions offload;
  offload.policy = options.policy;
  manager.addPass(createOffloadResiduals(offload));
  if (!options.weightGather.empty()) {
    GatherWeightsOptions gather;
    gather.mode = options.weightGather;
    gather.window = options.window;
    gather.prefetch = options.prefetch;
    manager.addPass(createGatherWeights(gather));
  }

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
  PassPipelineRegistration<ScheduleLayersOptions>(
      "schedule-layers",
      "From a model as built to a verified timeline of compute actions",
      buildScheduleLayersPipeline);
  PassPipelineRegistration<CompleteTimelineOptions>(
      "complete-timeline",
      "From compute actions to a verified timeline with communication",
      buildCompleteTimelinePipeline);
}

} // namespace mlir::pipe
