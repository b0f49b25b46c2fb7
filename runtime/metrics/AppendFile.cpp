// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/AppendFile.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/ReadAt.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace rota {

AppendFile::AppendFile(const std::string &path)
    : path(path),
      file(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (file < 0)
    throw RunError(
        fmt::format("cannot open '{}': {}", path, std::strerror(errno)));
}

AppendFile::~AppendFile() { close(file); }

std::string AppendFile::append(std::string_view record) {
  off_t end = lseek(file, 0, SEEK_END);
  while (!record.empty()) {
    ssize_t n = write(file, record.data(), record.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      int why = n < 0 ? errno : ENOSPC;
      // A file that cannot be cut keeps the part; readers skip it.
      [[maybe_unused]] int cut = end >= 0 ? ftruncate(file, end) : 0;
      return std::strerror(why);
    }
    record.remove_prefix(static_cast<size_t>(n));
  }
  return "";
}

bool AppendFile::endsWithinLine() const {
  off_t end = lseek(file, 0, SEEK_END);
  char last = '\n';
  return end > 0 && readAt(file, end - 1, {&last, 1}) == 1 && last != '\n';
}

} // namespace rota
