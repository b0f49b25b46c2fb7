// SPDX-License-Identifier: Apache-2.0
//
// Running the compiled trainer, for `rota train` and `rota probe`.
#ifndef ROTA_TOOLS_ROTA_PROCESS_H
#define ROTA_TOOLS_ROTA_PROCESS_H

#include "lowering/executable/MemoryFile.h"

#include <string>
#include <vector>

namespace rota {

/// Replaces the program of this process by `program`. The process keeps its
/// number, input and output, so signals reach the trainer, its exit code is
/// that of `rota`, and no parent or file is left to clean up. Returns only when
/// the program cannot be started, with an exit code, after a message.
int becomeProgram(const lowering::MemoryFile &program,
                  const std::vector<std::string> &arguments);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_PROCESS_H
