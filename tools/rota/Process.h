// SPDX-License-Identifier: Apache-2.0
//
// Running the compiled trainer, for the verbs that do.
#ifndef ROTA_TOOLS_ROTA_PROCESS_H
#define ROTA_TOOLS_ROTA_PROCESS_H

#include "lowering/executable/MemoryFile.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// Replaces the program of this process by `program`. The process keeps its
/// number, input and output, so signals reach the trainer, its exit code is
/// that of `rota`, and no parent or file is left to clean up. Returns only when
/// the program cannot be started, with an exit code, after a message. The
/// program has these descriptors, too.
int becomeProgram(const lowering::MemoryFile &program,
                  const std::vector<std::string> &arguments,
                  const std::vector<int64_t> &descriptors = {});

/// Runs `program` in a process of its own, which ends with this one: `take`
/// gets what it prints, as it comes. Returns its exit code; a signal that ends
/// the program ends this process too.
int runProgram(const lowering::MemoryFile &program,
               const std::vector<std::string> &arguments,
               const std::function<void(std::string_view)> &take);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_PROCESS_H
