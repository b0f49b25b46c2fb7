// SPDX-License-Identifier: Apache-2.0
//
// A file of a run's data, which is read in pieces for as long as the run takes.
// It is read by pread and not mapped: a file that shrinks is an error of one
// read, where a mapping would end the process with SIGBUS.
#ifndef ROTA_RUNTIME_DATA_DATAFILE_H
#define ROTA_RUNTIME_DATA_DATAFILE_H

#include <cstdint>
#include <string>
#include <utility>

namespace rota {

/// Closes a file's descriptor.
class FileHandle {
public:
  explicit FileHandle(int number = -1) : number(number) {}
  ~FileHandle();
  FileHandle(FileHandle &&other) noexcept
      : number(std::exchange(other.number, -1)) {}
  FileHandle &operator=(FileHandle &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  bool isOpen() const { return number >= 0; }
  int get() const { return number; }

private:
  int number;
};

/// Any thread may read it.
class DataFile {
public:
  /// Opens the file and notes its size. It stays open if `keepOpen`, else each
  /// read opens it again: a process has a limited number of open files. Throws
  /// InputError when it cannot be opened or is not a regular file.
  DataFile(std::string path, bool keepOpen);

  const std::string &path() const { return name; }
  /// Its size when it was opened.
  int64_t bytes() const { return size; }

  /// Bytes [offset, offset + count) to `out`. Throws RunError with the numbers
  /// when the file has fewer bytes by now or cannot be read.
  void read(int64_t offset, int64_t count, char *out) const;

private:
  std::string name;
  FileHandle handle;
  int64_t size = 0;
};

/// True where a file or folder of that path is. Throws InputError when that
/// cannot be found out.
bool isThere(const std::string &path);

} // namespace rota

#endif // ROTA_RUNTIME_DATA_DATAFILE_H
