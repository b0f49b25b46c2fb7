// SPDX-License-Identifier: Apache-2.0
//
// The passes that decide the order of each rank's actions, and their pipelines.
#ifndef ROTA_PASSES_PIPELINE_PASSES_H
#define ROTA_PASSES_PIPELINE_PASSES_H

#include "ir/pipe/Pipe.h"
#include "passes/TextOptions.h"
#include "passes/pipeline/timeline/LayerSplit.h"
#include "passes/pipeline/timeline/WeightWindows.h"

#include "mlir/Pass/Pass.h"

namespace mlir::pipe {

#define GEN_PASS_DECL
#include "passes/pipeline/Passes.h.inc"

/// The options of `schedule-layers`.
struct ScheduleLayersOptions : SplitStagesOptions, MakeTimelineOptions {};

/// From a model as built to a verified timeline of compute actions.
void buildScheduleLayersPipeline(OpPassManager &manager,
                                 const ScheduleLayersOptions &options);

/// The options of `complete-timeline`.
struct CompleteTimelineOptions : OffloadResidualsOptions,
                                 GatherWeightsOptions {};

/// From a timeline of compute actions, and the functions of one rank, to a
/// verified timeline with communication.
void buildCompleteTimelinePipeline(OpPassManager &manager,
                                   const CompleteTimelineOptions &options);

/// Registers the passes and both pipelines.
void registerPipelinePasses();

} // namespace mlir::pipe

#endif // ROTA_PASSES_PIPELINE_PASSES_H
