// SPDX-License-Identifier: Apache-2.0
//
// Programs that the compiler starts: a linker, an assembler.
#ifndef ROTA_LOWERING_EXECUTABLE_RUNTOOL_H
#define ROTA_LOWERING_EXECUTABLE_RUNTOOL_H

#include "lowering/executable/MemoryFile.h"
#include "llvm/ADT/ArrayRef.h"
#include <string>
#include <sys/types.h>

namespace rota::lowering {

/// Starts a program, with its output and its messages in files. It is ended
/// when the calling thread ends. Returns its process; -1 where there is none.
pid_t startTool(llvm::ArrayRef<std::string> arguments, int output,
                int messages);

/// Waits for it. Returns the status of waitpid; -1 where there is none. A
/// program that cannot be run ends with a status other than 0.
int waitForTool(pid_t process);

/// The first line of a program's messages with an error.
std::string firstError(const MemoryFile &messages);

} // namespace rota::lowering

#endif // ROTA_LOWERING_EXECUTABLE_RUNTOOL_H
