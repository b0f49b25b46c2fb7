// SPDX-License-Identifier: Apache-2.0
//
// A whole model, run as its pipeline's timeline says: ranks that know only
// their own chunks, and messages between them.
#ifndef ROTA_TEST_INTERPRETER_PIPELINERUN_H
#define ROTA_TEST_INTERPRETER_PIPELINERUN_H

#include "ir/pipe/Pipe.h"
#include "test/interpreter/ModelRun.h"

namespace rota::interpreter {

/// Loss and gradients of a differentiated model whose module holds a
/// `pipe.program` with a timeline and its communication. Each rank takes its
/// actions in order; a value that an action reads must have been made on its
/// rank or received there, and is gone when nothing will read it again. The
/// timeline is run as it stands: a missing or repeated action, a message that
/// does not match or a deadlock is an error at the timeline.
llvm::FailureOr<Step> runPipeline(mlir::pipe::ProgramOp program,
                                  const mlir::rota::Model &model,
                                  const Tensors &parameters,
                                  llvm::ArrayRef<Microbatch> microbatches,
                                  const Options &options = {});

} // namespace rota::interpreter

#endif // ROTA_TEST_INTERPRETER_PIPELINERUN_H
