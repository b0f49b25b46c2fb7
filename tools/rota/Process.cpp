// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Process.h"
#include "tools/rota/RunOptions.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace rota {

int becomeProgram(const lowering::MemoryFile &program,
                  const std::vector<std::string> &arguments) {
  std::string name = "rota-trainer";
  std::vector<char *> argv = {name.data()};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  std::fflush(nullptr);
  fcntl(program.descriptor(), F_SETFD, FD_CLOEXEC);
  fexecve(program.descriptor(), argv.data(), environ);
  fmt::print(stderr, "error: cannot run the trainer: {}\n",
             std::strerror(errno));
  return kExitRunFailed;
}

} // namespace rota
