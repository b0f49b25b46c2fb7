// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Folder.h"
#include "runtime/Error.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>

namespace rota {

static constexpr std::string_view kPrefix = "step-", kPartial = ".partial",
                                  kRemoved = ".old";

std::string checkpointName(int64_t step) {
  return fmt::format("{}{:010}", kPrefix, step);
}

std::optional<int64_t> stepOfCheckpoint(std::string_view name) {
  if (!name.starts_with(kPrefix))
    return std::nullopt;
  std::string_view digits = name.substr(kPrefix.size());
  int64_t step = 0;
  const char *end = digits.data() + digits.size();
  auto [stop, error] = std::from_chars(digits.data(), end, step);
  if (error != std::errc() || stop != end || step < 0 ||
      checkpointName(step) != name)
    return std::nullopt;
  return step;
}

std::string partialName(int64_t step) {
  return fmt::format(".{}{}", checkpointName(step), kPartial);
}

std::string removedName(int64_t step) {
  return fmt::format(".{}{}", checkpointName(step), kRemoved);
}

bool isUnfinished(std::string_view name) {
  if (!name.starts_with('.'))
    return false;
  for (std::string_view suffix : {kPartial, kRemoved})
    if (name.ends_with(suffix) &&
        stepOfCheckpoint(name.substr(1, name.size() - 1 - suffix.size())))
      return true;
  return false;
}

std::string rankFileName(int rank) {
  return fmt::format("rank-{}.safetensors", rank);
}

std::vector<int64_t> checkpointsIn(const std::string &folder) {
  std::vector<int64_t> steps;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error), end;
  if (error == std::errc::no_such_file_or_directory)
    return steps;
  for (; !error && entry != end; entry.increment(error))
    if (auto step = stepOfCheckpoint(entry->path().filename().string()))
      steps.push_back(*step);
  if (error)
    throw InputError(
        fmt::format("cannot read folder '{}': {}", folder, error.message()));
  std::sort(steps.begin(), steps.end());
  return steps;
}

} // namespace rota
