// SPDX-License-Identifier: Apache-2.0
//
// The terminal that standard output may be.
#ifndef ROTA_RUNTIME_FILES_TERMINAL_H
#define ROTA_RUNTIME_FILES_TERMINAL_H

namespace rota {

/// Whether a person sees the output on a terminal.
bool isTerminal();

/// Characters of a line: those that COLUMNS says, else those of the terminal; 0
/// where neither says any.
int terminalWidth();

} // namespace rota

#endif // ROTA_RUNTIME_FILES_TERMINAL_H
