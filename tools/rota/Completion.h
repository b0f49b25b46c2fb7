// SPDX-License-Identifier: Apache-2.0
//
// Completion of command lines in a shell, out of the tables of verbs and
// options.
#ifndef ROTA_TOOLS_ROTA_COMPLETION_H
#define ROTA_TOOLS_ROTA_COMPLETION_H

#include "runtime/options/Option.h"

#include <span>

namespace rota {

/// Prints the script that completes `rota` in `shell`, which is "bash".
/// `verbs`: the names of the commands. Returns the exit code.
int printCompletion(
    std::string_view shell,
    std::span<const std::pair<Command, std::string_view>> verbs);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_COMPLETION_H
