// SPDX-License-Identifier: Apache-2.0
//
// The writer of every output file, of the compiler and of trainers. A regular
// file appears complete or not at all, at the end of the links that its path
// names. Anything else (a device, a pipe, a file in memory, a link of /proc) is
// written in place.
#ifndef ROTA_RUNTIME_FILES_WRITEFILE_H
#define ROTA_RUNTIME_FILES_WRITEFILE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// A file beside `path` that becomes `path` when it is committed, and is
/// removed when it is not: `path` is either the old file or the whole new one.
/// A failure (a full disk, say) throws RunError and leaves no file.
class PendingFile {
public:
  /// `mode`: permissions of the new file, less the process's mask.
  explicit PendingFile(const std::string &path, unsigned mode = 0666);
  ~PendingFile();
  PendingFile(const PendingFile &) = delete;
  PendingFile &operator=(const PendingFile &) = delete;

  /// Writes at `offset` from the file's start. A pipe takes bytes only in the
  /// order of their offsets.
  void write(int64_t offset, std::string_view data);
  /// Syncs the bytes to the disk and gives the file its name.
  void commit();

private:
  [[noreturn]] void fail();

  const std::string path;
  std::string target;    // `path` without links
  std::string temporary; // empty: `target` is written in place
  int file = -1;
  int64_t end = 0; // end of the last write
};

/// Writes the parts, one after the other, through a PendingFile.
void writeFile(const std::string &path,
               const std::vector<std::string_view> &parts);

/// writeFile for code without exceptions: returns the error's message,
/// empty when the file is written.
std::string tryWriteFile(const std::string &path, std::string_view text,
                         unsigned mode = 0666);

/// Throws InputError when no file can be written at `path`: called before the
/// run. Opens nothing that is written in place.
void checkWritable(const std::string &path);

} // namespace rota

#endif // ROTA_RUNTIME_FILES_WRITEFILE_H
