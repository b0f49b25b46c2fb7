// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/Process.h"
#include "tools/rota/Options.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace rota {

std::optional<TemporaryFolder> TemporaryFolder::create(std::string &error) {
  std::error_code code;
  std::filesystem::path base = std::filesystem::temp_directory_path(code);
  std::string name = (code ? "/tmp" : base.string()) + "/rota-XXXXXX";
  if (!mkdtemp(name.data())) {
    error = fmt::format("cannot make a folder '{}': {}", name, strerror(errno));
    return std::nullopt;
  }
  return TemporaryFolder(std::move(name));
}

TemporaryFolder::TemporaryFolder(TemporaryFolder &&other)
    : folder(std::move(other.folder)) {
  other.folder.clear();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!folder.empty())
    std::filesystem::remove_all(folder, ignored);
}

int runProcess(const std::string &program,
               const std::vector<std::string> &arguments) {
  std::vector<char *> argv = {const_cast<char *>(program.c_str())};
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  // The child gets the default answers back.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGINT);
  sigaddset(&defaults, SIGTERM);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  auto interrupt = std::signal(SIGINT, SIG_IGN);
  pid_t child = 0;
  int failed = posix_spawn(&child, program.c_str(), nullptr, &attributes,
                           argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  int status = 0;
  if (!failed)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
      ;
  std::signal(SIGINT, interrupt);
  if (failed) {
    fmt::print(stderr, "error: cannot run '{}': {}\n", program,
               strerror(failed));
    return ExitFailure;
  }
  if (WIFEXITED(status))
    return WEXITSTATUS(status);
  fmt::print(stderr, "error: the trainer was ended by signal {} ({})\n",
             WTERMSIG(status), strsignal(WTERMSIG(status)));
  return ExitFailure;
}

} // namespace rota
