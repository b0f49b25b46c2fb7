// SPDX-License-Identifier: Apache-2.0
//
// The verbs of `rota`. Each prints its errors to standard
// error and returns the process' exit code (Options.h).
#ifndef ROTA_TOOLS_ROTA_VERBS_H
#define ROTA_TOOLS_ROTA_VERBS_H

#include "tools/rota/options/RunOptions.h"

namespace rota {

/// Writes a native trainer, or the level that `options.emit` names.
int runCompile(const RunOptions &options);
/// Compiles a trainer and becomes it: returns only when that fails.
int runTrain(const RunOptions &options);
/// Compiles a trainer and runs its `probe`; shapes that the options leave open
/// come from the tokens.
int runProbe(const RunOptions &options);
/// Compiles a trainer and runs its `eval`; the model and shapes that the
/// options leave open come from the checkpoint.
int runEval(const RunOptions &options);
/// Compiles a trainer, runs its `generate` and prints the text of its tokens.
int runGenerate(const RunOptions &options);
/// Prints parameters, operations, memory by rank and use, and the timeline.
int runPlan(const RunOptions &options);
/// Makes or reads a timeline, verifies, simulates and draws it. Nothing is
/// written when one of these fails. With `compare`, a table of several; it
/// fails when none of them exists for the numbers.
int runSchedule(const RunOptions &options);
/// Lists, shows or verifies checkpoints, as the first positional argument says.
int runCheckpoint(const RunOptions &options);
/// Writes a checkpoint's weights as a folder of a model hub.
int runConvert(const RunOptions &options);
/// Draws the run in `options.runFolder` as an HTML page.
int runReport(const RunOptions &options);

/// Writes files of text as one file of tokens.
int runTokenize(const RunOptions &options);
/// Writes files of tokens as text.
int runDetokenize(const RunOptions &options);

/// Lists machines, shows one or measures this host, as `options.action` says.
int runMachine(const RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_VERBS_H
