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
  manager.addPass(createSplitStages(options));
  manager.addPass(createMakeTimeline(options));
  manager.addPass(createVerifyTimeline());
  if (options.split == ::rota::pipe::LayerSplit::Balanced)
    manager.addPass(createBalanceStages());
}

void buildCompleteTimelinePipeline(OpPassManager &manager,
                                   const CompleteTimelineOptions &options) {
  manager.addPass(createInsertCommunication());
  OffloadResidualsOptions offload;
  offload.policy = options.policy;
  manager.addPass(createOffloadResiduals(offload));
  manager.addPass(createGatherWeights(options));

  VerifyTimelineOptions verify;
  verify.communication = true;
  manager.addPass(createVerifyTimeline(verify));
}

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/pipeline/Passes.h.inc"

struct ScheduleLayersText : ::rota::PipelineText<ScheduleLayersOptions> {
  ScheduleLayersText() {
    add("stages", stages);
    add("repeats", repeats);
    add("layers-per-chunk", layersPerChunk);
    add("layers-per-stage", layersPerStage);
    add("split", split);
    add("microbatches", microbatches);
    add("pipeline-layers", pipelineLayers);
    add("placement", placement);
    add("schedule", schedule);
    add("delay", delay);
    add("split-backward", splitBackward);
    add("pairs", pairs);
    add("activations", activations);
    add("any-placement", anyPlacement);
  }
};

struct CompleteTimelineText : ::rota::PipelineText<CompleteTimelineOptions> {
  CompleteTimelineText() {
    add("weight-gather", mode);
    add("window", window);
    add("prefetch", prefetch);
    add("policy", policy);
  }
};
} // namespace

void registerPipelinePasses() {
  registerTimelinePasses();
  PassPipelineRegistration<ScheduleLayersText>(
      "schedule-layers",
      "From a model as built to a verified timeline of compute actions",
      buildScheduleLayersPipeline);
  PassPipelineRegistration<CompleteTimelineText>(
      "complete-timeline",
      "From compute actions to a verified timeline with communication",
      buildCompleteTimelinePipeline);
}

} // namespace mlir::pipe
