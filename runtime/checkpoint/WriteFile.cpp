// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/WriteFile.h"
#include "runtime/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace rota {

PendingFile::PendingFile(const std::string &path)
    : path(path), temporary(fmt::format("{}.{}.part", path, getpid())) {
  file =
      open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0)
    fail("create");
}

PendingFile::~PendingFile() {
  if (file >= 0)
    close(file);
  if (!committed)
    unlink(temporary.c_str());
}

void PendingFile::write(int64_t offset, std::string_view data) {
  constexpr size_t kMost = 1 << 30; // a single write takes less than 2 GiB
  while (!data.empty()) {
    ssize_t n = pwrite(file, data.data(), std::min(data.size(), kMost), offset);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      fail("write");
    data.remove_prefix(static_cast<size_t>(n));
    offset += n;
  }
}

void PendingFile::commit() {
  if (fsync(file) != 0 && errno != EINVAL)
    fail("write");
  int closed = close(file);
  file = -1;
  if (closed != 0)
    fail("write");
  if (rename(temporary.c_str(), path.c_str()) != 0)
    fail("rename");
  committed = true;
}

void PendingFile::fail(const char *verb) {
  int why = errno;
  unlink(temporary.c_str());
  throw RunError(
      fmt::format("cannot {} '{}': {}", verb, path, std::strerror(why)));
}

void writeFile(const std::string &path,
               const std::vector<std::string_view> &parts) {
  PendingFile file(path);
  int64_t offset = 0;
  for (std::string_view part : parts) {
    file.write(offset, part);
    offset += static_cast<int64_t>(part.size());
  }
  file.commit();
}

void checkWritable(const std::string &path) {
  if (std::filesystem::is_directory(path))
    throw InputError(fmt::format("cannot write '{}': it is a folder", path));
  try {
    PendingFile file(path);
  } catch (const RunError &error) {
    throw InputError(error.what());
  }
}

} // namespace rota
