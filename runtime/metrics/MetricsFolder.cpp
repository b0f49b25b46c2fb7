// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/MetricsFolder.h"
#include "runtime/Error.h"
#include "runtime/files/WriteFile.h"
#include "runtime/program/JsonText.h"

#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <system_error>
#include <unistd.h>

namespace rota {

/// Seconds since 1970.
static double wallTime() {
  return std::chrono::duration<double>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

static std::string hostName() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 && name[0] ? name : "host";
}

std::string inFolder(const std::string &folder, const std::string &name) {
  return (std::filesystem::path(folder) / name).string();
}

void prepareMetricsFolder(const std::string &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw InputError(
        fmt::format("cannot make folder '{}': {}", folder, error.message()));
  checkWritable(inFolder(folder, metricsfiles::run));
  try {
    AppendFile file(inFolder(folder, metricsfiles::steps));
  } catch (const RunError &failure) {
    throw InputError(failure.what());
  }
}

MetricsFolder::MetricsFolder(const std::string &folder)
    : folder(folder), lines(inFolder(folder, metricsfiles::steps)),
      events(inFolder(folder, eventFileName(wallTime(), hostName()))) {
  if (lines.endsWithinLine())
    append(lines, "\n");
  append(events, versionRecord(wallTime()));
}

std::string MetricsFolder::append(AppendFile &file, std::string_view record) {
  std::string reason = file.append(record);
  if (reason.empty() || std::exchange(hasWarned, true))
    return "";
  return fmt::format("cannot write '{}': {}; the run goes on without the "
                     "numbers of this step",
                     file.path, reason);
}

std::string MetricsFolder::addStep(int64_t step,
                                   const std::vector<Metric> &metrics) {
  nlohmann::ordered_json line = {{"step", step}};
  std::vector<EventScalar> scalars;
  for (const Metric &metric : metrics) {
    line[metric.key] = metric.value;
    scalars.push_back({metric.tag, static_cast<float>(metric.value)});
  }
  std::string warning = append(lines, jsonText(line) + "\n");
  std::string second = append(events, scalarsRecord(wallTime(), step, scalars));
  return warning.empty() ? second : warning;
}

std::string MetricsFolder::addSample(const std::string &line) {
  try {
    AppendFile samples(inFolder(folder, metricsfiles::samples));
    return append(samples,
                  (samples.endsWithinLine() ? "\n" : "") + line + "\n");
  } catch (const RunError &error) {
    return std::exchange(hasWarned, true) ? "" : error.what();
  }
}

std::string MetricsFolder::replace(const char *name,
                                   std::string_view text) const {
  try {
    writeFile(inFolder(folder, name), {text});
    return "";
  } catch (const RunError &error) {
    return error.what();
  }
}

} // namespace rota
