// SPDX-License-Identifier: Apache-2.0
//
// Questions about the program in a module.
#ifndef ROTA_PASSES_PIPELINE_PROGRAM_H
#define ROTA_PASSES_PIPELINE_PROGRAM_H

#include "ir/pipe/Pipe.h"
#include "ir/rota/model/TrainingWork.h"
#include "passes/pipeline/timeline/LayerSplit.h"

namespace mlir::pipe {

/// The module's program; null after an error when there is not exactly one.
ProgramOp findProgram(ModuleOp module);

/// The timeline of the module's program; null after an error when there is
/// none.
TimelineOp findTimeline(ModuleOp module);

/// Emits an error for each rule that the timeline breaks.
LogicalResult verifyTimelineOp(TimelineOp timeline);

/// The table of chunks of which chunk c has the next `counts[c]` layers.
ArrayAttr makeChunks(::mlir::rota::StackOp stack,
                     const ::rota::pipe::Shape &shape,
                     ArrayRef<int64_t> counts);

/// The layers of each chunk.
std::vector<int64_t> layersOf(ProgramOp program);

/// The layers of each chunk of `shape`: the program's own where it has as many
/// chunks, else divided evenly; none where a chunk would have no layer.
std::vector<int64_t> layersOf(ProgramOp program,
                              const ::rota::pipe::Shape &shape);

/// The costs of the stack's layers, of which one of a kind takes
/// `layerCost(kind)`, beside those of the model's ends.
::rota::pipe::PartCosts
partCosts(::mlir::rota::StackOp stack, const ::rota::pipe::PartWork &embed,
          const ::rota::pipe::PartWork &loss,
          function_ref<::rota::pipe::PartWork(StringRef kind)> layerCost);

/// The cost of work that `scale` calls are of.
::rota::pipe::PartWork costOf(const ::mlir::rota::TrainingWork &work,
                              double scale = 1);

/// The costs of a model as built, in operations that the largest products of
/// the machine (ir/rota/cost/Machine.h) would be in the time of its ops.
::rota::pipe::PartCosts operationsOf(ProgramOp program);

/// Bytes of a microbatch's activation between two layers, undivided.
double messageBytes(ProgramOp program);

/// The costs of the program's actions in these operations if its chunks had
/// `layers`, of a message in those of the time in which it travels; unit slots
/// where layers have none.
::rota::pipe::CostTable costsOf(ProgramOp program,
                                const std::vector<int64_t> &layers);

/// The shares of a step in which ranks are idle.
struct Bubbles {
  double withBarrier = 0; // where the ranks wait at the end of a step
  double steady = 0;      // without a step barrier (SteadyStep)
};

/// The bubble shares of `timeline` under `costs`; 0 when the timeline does not
/// complete.
Bubbles bubblesOf(ProgramOp program, const ::rota::pipe::Timeline &timeline,
                  const ::rota::pipe::PartCosts &costs);

} // namespace mlir::pipe

#endif // ROTA_PASSES_PIPELINE_PROGRAM_H
