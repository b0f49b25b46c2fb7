// SPDX-License-Identifier: Apache-2.0
//
// Standard input, output and error of a program.
#ifndef ROTA_RUNTIME_FILES_STREAMS_H
#define ROTA_RUNTIME_FILES_STREAMS_H

#include <string>

namespace rota {

/// Called first in `main`. A stream that is closed becomes /dev/null, so that
/// no file gets its descriptor. From then on writing to `stdout` or `stderr`
/// neither fails nor throws: endOutput tells of bytes that were lost.
void prepareStreams();

/// Called last in `main`: writes what `stdout` keeps. Returns `exitCode` or,
/// where that is 0 and output was lost, kExitRunFailed after a message.
int endOutput(int exitCode);

/// Writes `text` to a file, or to `stdout` where `path` is empty or "-".
/// Returns an exit code, after a message where that is not 0: kExitBadInput
/// where no file can be made at `path`.
int writeOutput(const std::string &path, const std::string &text);

} // namespace rota

#endif // ROTA_RUNTIME_FILES_STREAMS_H
