// SPDX-License-Identifier: Apache-2.0
//
// Questions about the program in a module.
#ifndef ROTA_PASSES_PIPELINE_PROGRAM_H
#define ROTA_PASSES_PIPELINE_PROGRAM_H

#include "ir/pipe/Pipe.h"

namespace mlir::pipe {

/// The module's program; null after an error when there is not exactly one.
ProgramOp findProgram(ModuleOp module);

/// The timeline of the module's program; null after an error when there is
/// none.
TimelineOp findTimeline(ModuleOp module);

/// Emits an error for each rule that the timeline breaks.
LogicalResult verifyTimelineOp(TimelineOp timeline);

/// The share of a step in which ranks are idle, when a backward takes twice as
/// long as a forward, a chunk as long as it has layers, and transfers no time.
/// 0 when the timeline does not complete.
double bubbleOf(ProgramOp program, const ::rota::pipe::Timeline &timeline);

} // namespace mlir::pipe

#endif // ROTA_PASSES_PIPELINE_PROGRAM_H
