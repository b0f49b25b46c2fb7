// SPDX-License-Identifier: Apache-2.0
//
// The verb report: a page about a run out of the folder that it wrote.
#include "runtime/files/Streams.h"
#include "runtime/metrics/MetricsFolder.h"
#include "tools/rota/Verbs.h"
#include "tools/rota/report/Page.h"

#include <fmt/format.h>

namespace rota {

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
  if (int code = writeOutput(output, report::makePage(*folder)))
    return code;
  fmt::print("wrote {}\n", output);
  return kExitSuccess;
}

} // namespace rota
