// SPDX-License-Identifier: Apache-2.0
//
// The passes that decide the order of each rank's actions, and their pipelines.
#ifndef ROTA_PASSES_PIPELINE_PASSES_H
#define ROTA_PASSES_PIPELINE_PASSES_H

#include "ir/pipe/Pipe.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::pipe {

#define GEN_PASS_DECL
#include "passes/pipeline/Passes.h.inc"

/// The options of `schedule-layers`; see Passes.td.
struct ScheduleLayersOptions : PassPipelineOptions<ScheduleLayersOptions> {
  Option<int64_t> stages{*this, "stages",
                         llvm::cl::desc("Ranks of the pipeline"),
                         llvm::cl::init(1)};
  Option<int64_t> repeats{*this, "repeats",
                          llvm::cl::desc("Chunks on each rank; 0: derived"),
                          llvm::cl::init(0)};
  Option<int64_t> layersPerChunk{
      *this, "layers-per-chunk",
      llvm::cl::desc("Layers of a chunk; 0: derived"), llvm::cl::init(0)};
  Option<int64_t> microbatches{*this, "microbatches",
                               llvm::cl::desc("Microbatches of a step"),
                               llvm::cl::init(1)};
  Option<int64_t> pipelineLayers{*this, "pipeline-layers",
                                 llvm::cl::desc("Layers divided; 0: all"),
                                 llvm::cl::init(0)};
  Option<std::string> placement{*this, "placement", llvm::cl::desc("loop or v"),
                                llvm::cl::init("loop")};
  Option<std::string> schedule{*this, "schedule",
                               llvm::cl::desc("A schedule, or a .csv file"),
                               llvm::cl::init("circular")};
  Option<int64_t> delay{*this, "delay",
                        llvm::cl::desc("Forwarding delay, 1 or 2"),
                        llvm::cl::init(1)};
  Option<bool> splitBackward{*this, "split-backward",
                             llvm::cl::desc("I and W instead of B"),
                             llvm::cl::init(false)};
};

/// From a model as built to a verified timeline of compute actions.
void buildScheduleLayersPipeline(OpPassManager &manager,
                                 const ScheduleLayersOptions &options);

/// The options of `complete-timeline`; see Passes.td.
struct CompleteTimelineOptions : PassPipelineOptions<CompleteTimelineOptions> {
  Option<std::string> weightGather{
      *this, "weight-gather",
      llvm::cl::desc(
          "per-iteration, once, per-repeat, auto; empty: weights are "
          "not divided over the ranks of a stage"),
      llvm::cl::init("")};
  Option<int64_t> window{
      *this, "window",
      llvm::cl::desc("Most chunks gathered; -1: 2, or all for once"),
      llvm::cl::init(-1)};
  Option<int64_t> prefetch{
      *this, "prefetch",
      llvm::cl::desc("Most actions from a gather to its use; -1: no bound"),
      llvm::cl::init(-1)};
  Option<std::string> policy{
      *this, "policy",
      llvm::cl::desc("The remat policy that the user chose; empty: none"),
      llvm::cl::init("")};
};

/// From a timeline of compute actions, and the functions of one rank, to a
/// verified timeline with communication.
void buildCompleteTimelinePipeline(OpPassManager &manager,
                                   const CompleteTimelineOptions &options);

/// Registers the passes and both pipelines.
void registerPipelinePasses();

} // namespace mlir::pipe

#endif // ROTA_PASSES_PIPELINE_PASSES_H
