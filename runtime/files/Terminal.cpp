// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/Terminal.h"

#include <cstdlib>
#include <filesystem>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace rota {

/// Whether the terminal that mpirun of Open MPI makes for its first process
/// ends in a file or a pipe of mpirun's own, or on another machine.
static bool isPassedOn() {
  if (!std::getenv("OMPI_COMM_WORLD_SIZE"))
    return false;
  std::error_code error;
  auto output = std::filesystem::read_symlink(
      fmt::format("/proc/{}/fd/1", getppid()), error);
  return !error && !output.native().starts_with("/dev/pts/") &&
         !output.native().starts_with("/dev/tty");
}

bool isTerminal() { return isatty(STDOUT_FILENO) != 0 && !isPassedOn(); }

int terminalWidth() {
  if (const char *columns = std::getenv("COLUMNS"))
    if (int width = std::atoi(columns); width > 0)
      return width;
  winsize size = {};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

} // namespace rota
