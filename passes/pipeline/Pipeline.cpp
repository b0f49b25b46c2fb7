// SPDX-License-Identifier: Apache-2.0
//
// The phase as a pipeline: from layers to a timeline.
#include "passes/pipeline/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

namespace mlir::pipe {

void buildPipeline(OpPassManager &manager, const PipelineOptions &options) {
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
  manager.addPass(createInsertCommunication());

  if (!options.offload.empty() || options.offloadAll) {
    OffloadResidualsOptions offload;
    if (!options.offloadAll)
      offload.chunks.assign(options.offload.begin(), options.offload.end());
    manager.addPass(createOffloadResiduals(offload));
  }
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
  PassPipelineRegistration<PipelineOptions>(
      "pipeline", "from layers to a timeline with communication",
      buildPipeline);
}

} // namespace mlir::pipe
