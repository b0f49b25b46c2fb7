// SPDX-License-Identifier: Apache-2.0
//
// The verb report: a page about a run out of the folder that it wrote.
#include "runtime/metrics/MetricsFolder.h"
#include "tools/rota/Verbs.h"
#include "tools/rota/report/Page.h"

#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <memory>

namespace rota {

/// Returns the reason where it fails; empty: it is written.
static std::string writeText(const std::string &path, const std::string &text) {
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(
      std::fopen(path.c_str(), "wb"), std::fclose);
  if (file &&
      std::fwrite(text.data(), 1, text.size(), file.get()) == text.size()) {
    if (std::fclose(file.release()) == 0)
      return "";
  }
  return std::strerror(errno);
}

int runReport(const RunOptions &options) {
  std::string error;
  std::optional<report::RunFolder> folder =
      report::readRunFolder(options.runFolder, error);
  if (!folder) {
    fmt::print(stderr, "error: {}\n", error);
    return kExitBadInput;
  }
  for (const std::string &note : folder->notes)
    fmt::print(stderr, "note: {}\n", note);
  std::string output = options.output.empty()
                           ? inFolder(options.runFolder, "report.html")
                           : options.output;
  if (std::string reason = writeText(output, report::makePage(*folder));
      !reason.empty()) {
    fmt::print(stderr, "error: cannot write '{}': {}\n", output, reason);
    return kExitRunFailed;
  }
  fmt::print("wrote {}\n", output);
  return kExitSuccess;
}

} // namespace rota
