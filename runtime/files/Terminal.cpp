// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/Terminal.h"

#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace rota {

bool isTerminal() { return isatty(STDOUT_FILENO) != 0; }

int terminalWidth() {
  if (const char *columns = std::getenv("COLUMNS"))
    if (int width = std::atoi(columns); width > 0)
      return width;
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

} // namespace rota
