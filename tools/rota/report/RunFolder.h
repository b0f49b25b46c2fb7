// SPDX-License-Identifier: Apache-2.0
//
// The folder that `--metrics` wrote (runtime/metrics/MetricsFolder.h), read
// with no trust in its files: a run may have been killed while it wrote, or
// still go on.
#ifndef ROTA_TOOLS_ROTA_REPORT_RUNFOLDER_H
#define ROTA_TOOLS_ROTA_REPORT_RUNFOLDER_H

#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rota::report {

using Json = nlohmann::ordered_json;

/// The member of that name; null where `object` has none or is no object.
const Json &member(const Json &object, const std::string &name);
/// The number or text of that name.
std::optional<double> number(const Json &object, const std::string &name);
std::string text(const Json &object, const std::string &name);

/// The value of a text; null or discarded where it is not JSON.
Json parseJson(std::string_view text);

struct RunFolder {
  Json run, summary; // objects; null where the file is missing or broken
  std::map<int64_t, Json> steps;  // by number
  Json trace;                     // a list of events; null likewise
  std::vector<std::string> notes; // what is missing or broken, for people
};

/// Reads the folder. Nothing, with the reason in `error`, where it has neither
/// run.json nor metrics.jsonl.
std::optional<RunFolder> readRunFolder(const std::string &path,
                                       std::string &error);

} // namespace rota::report

#endif // ROTA_TOOLS_ROTA_REPORT_RUNFOLDER_H
