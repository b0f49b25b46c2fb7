// SPDX-License-Identifier: Apache-2.0
//
// Lookup of a module's program and timeline, for the passes of this phase.
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

} // namespace mlir::pipe

#endif // ROTA_PASSES_PIPELINE_PROGRAM_H
