// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Process.h"
#include "tools/rota/options/RunOptions.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rota {

/// The name of a program and its arguments, as fexecve takes them.
static std::vector<char *>
argumentPointers(std::string &name, const std::vector<std::string> &arguments) {
  std::vector<char *> argv = {name.data()};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  return argv;
}

static int reportFailure(const char *what) {
  fmt::print(stderr, "error: cannot {}: {}\n", what, std::strerror(errno));
  return kExitRunFailed;
}

int becomeProgram(const lowering::MemoryFile &program,
                  const std::vector<std::string> &arguments,
                  const std::vector<int64_t> &descriptors) {
  std::string name = "rota-trainer";
  std::vector<char *> argv = argumentPointers(name, arguments);
  std::fflush(nullptr);
  fcntl(program.descriptor(), F_SETFD, FD_CLOEXEC);
  for (int64_t descriptor : descriptors)
    fcntl(static_cast<int>(descriptor), F_SETFD, 0);
  fexecve(program.descriptor(), argv.data(), environ);
  return reportFailure("run the trainer");
}

/// What a process prints, until it closes its output.
static void readAll(int file,
                    const std::function<void(std::string_view)> &take) {
  char piece[4096];
  for (;;) {
    ssize_t n = read(file, piece, sizeof piece);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return;
    take({piece, static_cast<size_t>(n)});
  }
}

int runProgram(const lowering::MemoryFile &program,
               const std::vector<std::string> &arguments,
               const std::function<void(std::string_view)> &take) {
  std::string name = "rota-trainer";
  std::vector<char *> argv = argumentPointers(name, arguments);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    return reportFailure("make a pipe");
  std::fflush(nullptr);
  fcntl(program.descriptor(), F_SETFD, FD_CLOEXEC);
  pid_t parent = getpid(), child = fork();
  if (child < 0)
    return reportFailure("start the trainer");
  if (child == 0) {
    // Between fork and exec only calls that signal handlers may make.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(ends[1], STDOUT_FILENO) >= 0)
      fexecve(program.descriptor(), argv.data(), environ);
    _exit(kExitRunFailed);
  }
  close(ends[1]);
  readAll(ends[0], take);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  if (WIFSIGNALED(status)) {
    std::fflush(nullptr);
    std::signal(WTERMSIG(status), SIG_DFL);
    std::raise(WTERMSIG(status));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : kExitRunFailed;
}

} // namespace rota
