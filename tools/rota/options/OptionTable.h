// SPDX-License-Identifier: Apache-2.0
//
// The table of all options of `rota`.
#ifndef ROTA_TOOLS_ROTA_OPTIONTABLE_H
#define ROTA_TOOLS_ROTA_OPTIONTABLE_H

#include "tools/rota/options/RunOptions.h"

#include <span>

namespace rota {

/// The rows, with `options` as their variables: those that change what is
/// compiled or printed, and those of the trainer.
std::vector<Option> optionTable(RunOptions &options);

/// The verbs that a RUN.json serves. A key is the first row of that name that
/// one of them takes.
inline constexpr unsigned kRunFileVerbs = Command::Train | Command::Compile |
                                          Command::Plan | Command::Probe |
                                          Command::Eval;

/// Checks what must fit together, once every option has its value; sets those
/// that follow from the mesh and the schedule.
OptionMistake checkOptions(RunOptions &options);

/// Checks the options of `schedule` against each other.
OptionMistake checkScheduleOptions(const RunOptions &options);

/// The words that an argument of `verb` without a flag begins with: what
/// `checkpoint` and `machine` do. None for other verbs.
std::span<const std::string_view> actionsOf(Command verb);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_OPTIONTABLE_H
