// SPDX-License-Identifier: Apache-2.0
//
// The files that a run names, looked at before its trainer is compiled.
#ifndef ROTA_TOOLS_ROTA_CHECKINPUTS_H
#define ROTA_TOOLS_ROTA_CHECKINPUTS_H

#include "tools/rota/options/RunOptions.h"

#include <functional>

namespace rota {

/// Whether the data, weights and checkpoint that `options` name are there and
/// files can be written where they say: what the trainer refuses without having
/// read the model. False: `error` says what is wrong.
bool checkInputs(Command verb, const RunOptions &options, std::string &error);

/// Whether `options` name data for a model that trains on tokens, and none for
/// another. False: `error` says what is wrong.
bool checkDataGiven(bool takesTokens, const RunOptions &options,
                    std::string &error);

/// The steps that the checkpoint from which a training run goes on has, where
/// none is left and the run would write nothing. Nothing: its trainer has to
/// run.
std::optional<int64_t> finishedSteps(const RunOptions &options);

/// Whether a file can be written at `path`; else the reason in `error`.
bool checkOutput(const std::string &path, std::string &error);

/// Does the work of a verb, and prints the error that it throws.
ExitCode reportErrors(const std::function<void()> &work);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_CHECKINPUTS_H
