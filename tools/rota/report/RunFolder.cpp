// SPDX-License-Identifier: Apache-2.0
#include "tools/rota/report/RunFolder.h"

#include "runtime/metrics/MetricsFolder.h"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

namespace rota::report {

namespace {

class RunFolderReader {
public:
  explicit RunFolderReader(std::string path) : path(std::move(path)) {}

  std::optional<RunFolder> read(std::string &error) {
    auto isThere = [&](const char *name) {
      std::error_code ignored;
      return std::filesystem::is_regular_file(inFolder(path, name), ignored);
    };
    if (!isThere(metricsfiles::run) && !isThere(metricsfiles::steps)) {
      error = fmt::format("expected a folder that --metrics wrote, with {} or "
                          "{}, got '{}'",
                          metricsfiles::run, metricsfiles::steps, path);
      return std::nullopt;
    }
    folder.run = readObject(metricsfiles::run);
    folder.summary = readObject(metricsfiles::summary);
    readSteps();
    folder.trace = member(readObject(metricsfiles::trace), "traceEvents");
    return std::move(folder);
  }

private:
  void note(const std::string &text) { folder.notes.push_back(text); }

  std::optional<std::string> readText(const char *name) {
    std::ifstream stream(inFolder(path, name), std::ios::binary);
    std::stringstream text;
    text << stream.rdbuf();
    if (stream)
      return text.str();
    note(fmt::format("{} is missing", name));
    return std::nullopt;
  }

  /// The file's object; null where there is none.
  Json readObject(const char *name) {
    std::optional<std::string> text = readText(name);
    if (!text)
      return nullptr;
    Json value = parseJson(*text);
    if (value.is_object())
      return value;
    note(fmt::format("{} is broken: expected a JSON object", name));
    return nullptr;
  }

  /// The last line of a step counts.
  void readSteps() {
    std::optional<std::string> text = readText(metricsfiles::steps);
    std::stringstream stream(text.value_or(""));
    int64_t broken = 0;
    for (std::string line; std::getline(stream, line);) {
      Json value = parseJson(line);
      const Json &step = member(value, "step");
      if (step.is_number_integer())
        folder.steps[step.get<int64_t>()] = std::move(value);
      else
        ++broken;
    }
    if (broken > 0)
      note(fmt::format("{}: {} of its lines {} cut or broken and not used",
                       metricsfiles::steps, broken,
                       broken == 1 ? "is" : "are"));
  }

  std::string path;
  RunFolder folder;
};

} // namespace

std::optional<ProcessSteps> stepsOfProcess(const Json &summary) {
  auto last = number(summary, "steps");
  if (!last)
    return std::nullopt;
  return ProcessSteps{number(summary, "steps_before").value_or(0), *last};
}

std::optional<RunFolder> readRunFolder(const std::string &path,
                                       std::string &error) {
  return RunFolderReader(path).read(error);
}

} // namespace rota::report
