// SPDX-License-Identifier: Apache-2.0
#include "lowering/executable/RunTool.h"

#include "llvm/ADT/SmallVector.h"

#include <cerrno>
#include <csignal>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace rota::lowering {

pid_t startTool(llvm::ArrayRef<std::string> arguments, int output,
                int messages) {
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t parent = getpid();
  pid_t child = fork();
  if (child == 0) { // other threads may hold locks: system calls alone
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent) // else it ended before the line above
      if (dup2(output, STDOUT_FILENO) >= 0 &&
          dup2(messages, STDERR_FILENO) >= 0)
        execv(argv[0], argv.data());
    _exit(127);
  }
  return child;
}

int waitForTool(pid_t process) {
  int status = -1;
  while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR)
    ;
  return status;
}

std::string firstError(const MemoryFile &messages) {
  auto buffer = messages.read();
  if (!buffer)
    return "no message";
  llvm::StringRef text = (*buffer)->getBuffer();
  llvm::SmallVector<llvm::StringRef> lines;
  text.split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines)
    if (line.contains("error") || line.contains("cannot find") ||
        line.contains("fatal"))
      return line.str();
  return lines.empty() ? "no message" : lines.front().str();
}

} // namespace rota::lowering
