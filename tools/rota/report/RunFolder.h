// SPDX-License-Identifier: Apache-2.0
//
// The folder that `--metrics` wrote (runtime/metrics/MetricsFolder.h), read
// with no trust in its files: a run may have been killed while it wrote, or
// still go on.
#ifndef ROTA_TOOLS_ROTA_REPORT_RUNFOLDER_H
#define ROTA_TOOLS_ROTA_REPORT_RUNFOLDER_H

#include "tools/rota/report/Html.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rota::report {

struct RunFolder {
  Json run, summary; // objects; null where the file is missing or broken
  std::map<int64_t, Json> steps;  // by number
  Json trace;                     // a list of events; null likewise
  std::vector<std::string> notes; // what is missing or broken, for people
};

/// The steps of the process that wrote a summary; earlier processes made those
/// before. Nothing where the summary does not say them.
struct ProcessSteps {
  double before = 0, last = 0;
  double count() const { return last - before; }
};
std::optional<ProcessSteps> stepsOfProcess(const Json &summary);

/// Reads the folder. Nothing, with the reason in `error`, where it has neither
/// run.json nor metrics.jsonl.
std::optional<RunFolder> readRunFolder(const std::string &path,
                                       std::string &error);

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_RUNFOLDER_H
