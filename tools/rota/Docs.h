// SPDX-License-Identifier: Apache-2.0
//
// The reference for users in Markdown, from the tables that the program works
// with. The target rota-docs writes it to files.
#ifndef ROTA_TOOLS_ROTA_DOCS_H
#define ROTA_TOOLS_ROTA_DOCS_H

#include "runtime/options/Option.h"

#include <span>

namespace rota {

/// Prints the reference of "flags", "families" or "schedules". `verbs`: the
/// names of the commands. Returns the exit code.
int printDocs(std::string_view topic,
              std::span<const std::pair<Command, std::string_view>> verbs);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_DOCS_H
