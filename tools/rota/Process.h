// SPDX-License-Identifier: Apache-2.0
//
// Running a compiled trainer: a folder for it and a child process.
#ifndef ROTA_TOOLS_ROTA_PROCESS_H
#define ROTA_TOOLS_ROTA_PROCESS_H

#include <optional>
#include <string>
#include <vector>

namespace rota {

/// A folder that is gone, with what is in it, when this object is.
class TemporaryFolder {
public:
  /// Nothing, and the reason in `error`, when the folder cannot be made.
  static std::optional<TemporaryFolder> create(std::string &error);
  ~TemporaryFolder();
  TemporaryFolder(TemporaryFolder &&other);
  TemporaryFolder &operator=(TemporaryFolder &&) = delete;

  const std::string &path() const { return folder; }

private:
  explicit TemporaryFolder(std::string folder) : folder(std::move(folder)) {}
  std::string folder; // empty: moved away
};

/// Runs `program` with these arguments to its end, its input and output those
/// of this process. Returns its exit code; 1 after a message when it could not
/// be started or was killed. An interrupt is the child's to answer.
int runProcess(const std::string &program,
               const std::vector<std::string> &arguments);

} // namespace rota

#endif // ROTA_TOOLS_ROTA_PROCESS_H
