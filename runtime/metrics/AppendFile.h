// SPDX-License-Identifier: Apache-2.0
//
// A file that records are appended to while a run goes on.
#ifndef ROTA_RUNTIME_METRICS_APPENDFILE_H
#define ROTA_RUNTIME_METRICS_APPENDFILE_H

#include <string>
#include <string_view>

namespace rota {

class AppendFile {
public:
  /// Opens the file, which is made where there is none. Throws RunError.
  explicit AppendFile(const std::string &path);
  ~AppendFile();
  AppendFile(const AppendFile &) = delete;
  AppendFile &operator=(const AppendFile &) = delete;

  /// Writes a record at the end of the file, with nothing kept back in this
  /// process. Where that fails (a full disk, say) the file is cut back to the
  /// records before; returns the reason, empty when it is written.
  std::string append(std::string_view record);

  /// Whether the file has bytes and the last one is not the end of a line: a
  /// process was killed while it wrote.
  bool endsWithinLine() const;

  const std::string path;

private:
  int file;
};

} // namespace rota

#endif // ROTA_RUNTIME_METRICS_APPENDFILE_H
