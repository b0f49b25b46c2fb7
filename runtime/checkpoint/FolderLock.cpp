// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/FolderLock.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/Folder.h"
#include "runtime/checkpoint/ReadAt.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace rota {

/// The process that the lock file names.
static std::string holderOf(int file) {
  char text[32];
  int64_t bytes = readAt(file, 0, text);
  return bytes > 0 ? std::string(text, static_cast<size_t>(bytes)) : "unknown";
}

FolderLock::FolderLock(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw RunError(
        fmt::format("cannot create '{}': {}", folder, error.message()));
  std::string path = (std::filesystem::path(folder) / kLockFile).string();
  auto fail = [&](const char *verb) {
    int why = errno;
    if (file >= 0)
      close(file);
    throw RunError(
        fmt::format("cannot {} '{}': {}", verb, path, std::strerror(why)));
  };
  file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    fail("create");
  if (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      fail("lock");
    std::string holder = holderOf(file);
    close(file);
    throw InputError(fmt::format("'{}': expected a folder that no other run "
                                 "writes to, got one of process {}",
                                 folder, holder));
  }
  std::string own = std::to_string(getpid());
  if (ftruncate(file, 0) != 0 || pwrite(file, own.data(), own.size(), 0) !=
                                     static_cast<ssize_t>(own.size()))
    fail("write");
}

FolderLock::~FolderLock() { close(file); }

} // namespace rota
