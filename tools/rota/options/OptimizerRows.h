// SPDX-License-Identifier: Apache-2.0
//
// The rows of options of the optimizers that change compiled code.
#ifndef ROTA_TOOLS_ROTA_OPTIMIZERROWS_H
#define ROTA_TOOLS_ROTA_OPTIMIZERROWS_H

#include "tools/rota/options/RunOptions.h"

namespace rota {

/// The numbers of all optimizers, each name once, with the value that the first
/// optimizer with it has by default.
std::vector<ProgramOption> ownOptions();

/// The rows of what changes compiled code.
std::vector<Option> optimizerRows(RunOptions &options, unsigned commands);

/// Checks that the given options are the chosen optimizer's. Leaves those in
/// `optimizer.own`, with the values of this optimizer where none were given,
/// and in the values of build-updates.
OptionMistake checkOptimizer(RunOptions &options);

/// Program::optimizer: the options that are the chosen optimizer's with their
/// values, but for those that the trainer has too. They are checked.
std::string optimizerText(const RunOptions &options);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_OPTIMIZERROWS_H
