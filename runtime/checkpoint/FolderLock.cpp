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
#include <thread>
#include <unistd.h>
#include <utility>

namespace rota {

static constexpr std::chrono::milliseconds kBetweenTries(20);

/// The process that the lock file names.
static std::string holderOf(int file) {
  char text[32];
  int64_t bytes = readAt(file, 0, text);
  return bytes > 0 ? std::string(text, static_cast<size_t>(bytes)) : "unknown";
}

[[noreturn]] static void fail(const char *verb, const std::string &path) {
  throw RunError(
      fmt::format("cannot {} '{}': {}", verb, path, std::strerror(errno)));
}

FolderLock::FolderLock(const std::string &folder,
                       std::chrono::milliseconds patience) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw InputError(
        fmt::format("cannot create '{}': {}", folder, error.message()));
  std::string path = (std::filesystem::path(folder) / kLockFile).string();
  file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0)
    throw InputError(
        fmt::format("cannot create '{}': {}", path, std::strerror(errno)));
  try {
    if (!waitFor(patience, folder, path))
      throw InputError(fmt::format("'{}': expected a folder that no other run "
                                   "writes to, got one of process {}",
                                   folder, holderOf(file)));
    std::string own = std::to_string(getpid());
    if (ftruncate(file, 0) != 0 || pwrite(file, own.data(), own.size(), 0) !=
                                       static_cast<ssize_t>(own.size()))
      fail("write", path);
  } catch (...) {
    close(file);
    throw;
  }
}

/// Whether the file system has no locks: Lustre without the option `flock`,
/// say, or NFS without its lock daemon.
static bool isWithoutLocks(int error) {
  return error == ENOSYS || error == EOPNOTSUPP || error == ENOLCK;
}

bool FolderLock::waitFor(std::chrono::milliseconds patience,
                         const std::string &folder, const std::string &path) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + patience;
  bool isNoted = false;
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (isWithoutLocks(errno)) {
      fmt::print(stderr,
                 "note: '{}': its file system has no locks ({}), so that "
                 "another run which writes to it is not noticed\n",
                 folder, std::strerror(errno));
      return true;
    }
    if (errno != EWOULDBLOCK)
      fail("lock", path);
    if (Clock::now() >= end)
      return false;
    if (!std::exchange(isNoted, true))
      fmt::print(stderr,
                 "note: '{}': waiting for the end of process {}, which "
                 "writes to it\n",
                 folder, holderOf(file));
    std::this_thread::sleep_for(kBetweenTries);
  }
  return true;
}

FolderLock::~FolderLock() { close(file); }

} // namespace rota
