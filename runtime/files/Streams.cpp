// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/Streams.h"
#include "runtime/Error.h"
#include "runtime/files/WriteFile.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace rota {

namespace {

struct Output {
  int descriptor;
  int error = 0; // errno of the first bytes that were lost
};

Output standardOutput{STDOUT_FILENO}, standardError{STDERR_FILENO};

/// Takes all bytes, also those that cannot be written.
ssize_t writeBytes(void *cookie, const char *bytes, size_t size) {
  auto *output = static_cast<Output *>(cookie);
  for (size_t done = 0; done < size;) {
    ssize_t n = write(output->descriptor, bytes + done, size - done);
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR) {
      if (output->error == 0)
        output->error = errno;
      break;
    }
  }
  return static_cast<ssize_t>(size);
}

/// A stream for `output`, buffered as one of the C library would be.
std::FILE *openStream(Output &output, int buffering) {
  cookie_io_functions_t functions = {};
  functions.write = writeBytes;
  std::FILE *stream = fopencookie(&output, "w", functions);
  if (stream)
    std::setvbuf(stream, nullptr, buffering, BUFSIZ);
  return stream;
}

} // namespace

void prepareStreams() {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0)
      open("/dev/null", O_RDWR); // takes the lowest free descriptor
  if (std::FILE *stream =
          openStream(standardOutput, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF))
    stdout = stream;
  if (std::FILE *stream = openStream(standardError, _IONBF))
    stderr = stream;
}

int endOutput(int exitCode) {
  std::fflush(stdout);
  if (standardOutput.error == 0 || exitCode != kExitSuccess)
    return exitCode;
  std::fprintf(stderr, "error: cannot write to standard output: %s\n",
               std::strerror(standardOutput.error));
  return kExitRunFailed;
}

int writeOutput(const std::string &path, const std::string &text) {
  if (path.empty() || path == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return kExitSuccess;
  }
  try {
    checkWritable(path);
  } catch (const InputError &mistake) {
    std::fprintf(stderr, "error: %s\n", mistake.what());
    return kExitBadInput;
  }
  std::string error = tryWriteFile(path, text);
  if (error.empty())
    return kExitSuccess;
  std::fprintf(stderr, "error: %s\n", error.c_str());
  return kExitRunFailed;
}

} // namespace rota
