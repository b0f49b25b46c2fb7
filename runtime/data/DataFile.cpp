// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/DataFile.h"
#include "runtime/Error.h"
#include "runtime/checkpoint/ReadAt.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rota {

FileHandle::~FileHandle() {
  if (number >= 0)
    close(number);
}

/// Does not wait for the writer of a pipe.
static FileHandle openToRead(const std::string &path) {
  return FileHandle(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

DataFile::DataFile(std::string path, bool keepOpen) : name(std::move(path)) {
  FileHandle opened = openToRead(name);
  if (!opened.isOpen())
    throw InputError(
        fmt::format("cannot open '{}': {}", name, std::strerror(errno)));
  struct stat status;
  if (fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode))
    throw InputError(fmt::format("'{}': expected a regular file", name));
  size = status.st_size;
  if (keepOpen)
    handle = std::move(opened);
}

void DataFile::read(int64_t offset, int64_t count, char *out) const {
  FileHandle opened;
  if (!handle.isOpen())
    opened = openToRead(name);
  int number = handle.isOpen() ? handle.get() : opened.get();
  if (number < 0)
    throw RunError(
        fmt::format("cannot open '{}' again: {}", name, std::strerror(errno)));
  int64_t got = readAt(number, offset, {out, static_cast<size_t>(count)});
  if (got < 0)
    throw RunError(fmt::format("'{}': cannot read {} bytes at offset {}: {}",
                               name, count, offset, std::strerror(errno)));
  if (got < count)
    throw RunError(fmt::format(
        "'{}': expected {} bytes at offset {}, got {}: the file had {} bytes "
        "when the run began",
        name, count, offset, got, size));
}

bool isThere(const std::string &path) {
  struct stat status;
  if (stat(path.c_str(), &status) == 0)
    return true;
  if (errno == ENOENT || errno == ENOTDIR)
    return false;
  throw InputError(
      fmt::format("cannot look up '{}': {}", path, std::strerror(errno)));
}

} // namespace rota
