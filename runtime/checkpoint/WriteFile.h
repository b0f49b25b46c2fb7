// SPDX-License-Identifier: Apache-2.0
//
// Files that appear complete or not at all.
#ifndef ROTA_RUNTIME_CHECKPOINT_WRITEFILE_H
#define ROTA_RUNTIME_CHECKPOINT_WRITEFILE_H

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
  explicit PendingFile(const std::string &path);
  ~PendingFile();
  PendingFile(const PendingFile &) = delete;
  PendingFile &operator=(const PendingFile &) = delete;

  /// Writes at `offset` from the file's start.
  void write(int64_t offset, std::string_view data);
  void commit();

private:
  [[noreturn]] void fail(const char *verb);

  std::string path, temporary;
  int file = -1;
  bool committed = false;
};

/// Writes the parts, one after the other, through a PendingFile.
void writeFile(const std::string &path,
               const std::vector<std::string_view> &parts);

/// Throws InputError when no file can be made at `path`: called before the run.
void checkWritable(const std::string &path);

} // namespace rota

#endif // ROTA_RUNTIME_CHECKPOINT_WRITEFILE_H
