// SPDX-License-Identifier: Apache-2.0
//
// Compiling the model of a command line, for the verbs.
#ifndef ROTA_TOOLS_ROTA_COMPILE_H
#define ROTA_TOOLS_ROTA_COMPILE_H

#include "lowering/executable/MemoryFile.h"
#include "tools/planner/Planner.h"
#include "tools/rota/CheckpointModel.h"
#include "tools/rota/options/RunOptions.h"

#include <memory>

namespace rota {

/// The dialects of models, for a context.
mlir::DialectRegistry modelDialects();

/// Prints an error; kExitBadInput.
ExitCode reportBadInput(const std::string &error);

/// Prints that there is no file for a trainer; kExitRunFailed.
int reportNoFile(std::error_code error);

/// A note on the bound on activations that was chosen, if one was. It is
/// printed by the first process alone.
void noteActivations(const PlanChoices &choices, const RunOptions &options);

/// Compiles the model of `options` to `output`, for `verb`, whose initial
/// weights become those of the options.
ExitCode compile(Command verb, RunOptions &options, const std::string &output);

/// Compiles a trainer for `verb` into `trainer`. `temporary` is removed then.
ExitCode compileTrainer(Command verb, RunOptions &options,
                        const lowering::MemoryFile &trainer,
                        std::unique_ptr<CheckpointModel> temporary = nullptr);

/// Compiles a trainer and becomes it, with the arguments of `verb`: returns
/// only when that fails. `temporary` is removed in between.
int compileThenRun(Command verb, RunOptions options,
                   std::unique_ptr<CheckpointModel> temporary = nullptr);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_COMPILE_H
