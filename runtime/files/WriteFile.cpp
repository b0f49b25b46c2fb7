// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/WriteFile.h"
#include "runtime/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace rota {

/// Replaces `path` by what its links lead to. Returns whether that is written
/// in place.
static bool followLinks(std::string &path) {
  constexpr int kMostLinks = 40; // as in the kernel
  struct stat status;
  if (stat(path.c_str(), &status) == 0 &&
      (!S_ISREG(status.st_mode) || status.st_nlink == 0))
    return true;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(path, error));) {
    fs::path folder =
        fs::canonical(fs::absolute(path, error).parent_path(), error);
    // A link of /proc names an open file, whatever its text says.
    if (++links > kMostLinks || error || folder.string().starts_with("/proc/"))
      return true;
    path = folder / fs::read_symlink(path, error);
  }
  return false;
}

PendingFile::PendingFile(const std::string &path, unsigned mode)
    : path(path), target(path) {
  constexpr int kMostNames = 100;
  constexpr int kFlags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
  if (followLinks(target)) {
    file = open(target.c_str(), kFlags | O_TRUNC);
  } else {
    // O_EXCL: a file or a link that somebody else has put there is not opened.
    for (int n = 0; n < kMostNames && file < 0; ++n) {
      temporary = fmt::format("{}.{}-{}.part", target, getpid(), n);
      file =
          open(temporary.c_str(), kFlags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
      if (file < 0 && errno != EEXIST)
        break;
    }
  }
  if (file < 0) {
    temporary.clear();
    fail();
  }
}

PendingFile::~PendingFile() {
  if (file >= 0)
    close(file);
  if (!temporary.empty())
    unlink(temporary.c_str());
}

void PendingFile::write(int64_t offset, std::string_view data) {
  constexpr size_t kMost = 1 << 30; // a single write takes less than 2 GiB
  while (!data.empty()) {
    size_t size = std::min(data.size(), kMost);
    ssize_t n = pwrite(file, data.data(), size, offset);
    if (n < 0 && errno == ESPIPE && offset == end)
      n = ::write(file, data.data(), size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      fail();
    data.remove_prefix(static_cast<size_t>(n));
    end = offset += n;
  }
}

void PendingFile::commit() {
  if (fsync(file) != 0 && errno != EINVAL)
    fail();
  int closed = close(file);
  file = -1;
  if (closed != 0)
    fail();
  if (temporary.empty())
    return;
  if (rename(temporary.c_str(), target.c_str()) != 0)
    fail();
  temporary.clear();
}

void PendingFile::fail() {
  throw RunError(
      fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
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

std::string tryWriteFile(const std::string &path, std::string_view text,
                         unsigned mode) {
  try {
    PendingFile file(path, mode);
    file.write(0, text);
    file.commit();
    return "";
  } catch (const std::exception &error) {
    return error.what();
  }
}

void checkWritable(const std::string &path) {
  std::string target = path;
  bool isInPlace = followLinks(target);
  std::error_code unknown;
  if (fs::is_directory(target, unknown))
    throw InputError(fmt::format("cannot write '{}': it is a folder", path));
  if (isInPlace && access(target.c_str(), W_OK) != 0)
    throw InputError(
        fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  if (isInPlace)
    return;
  try {
    PendingFile file(path);
  } catch (const RunError &error) {
    throw InputError(error.what());
  }
}

} // namespace rota
