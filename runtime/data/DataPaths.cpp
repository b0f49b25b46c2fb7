// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/DataPaths.h"
#include "runtime/Error.h"
#include "runtime/data/DataFile.h"
#include "runtime/data/TokenFile.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <optional>
#include <sys/stat.h>
#include <utility>

namespace rota {

namespace fs = std::filesystem;

static constexpr const char *kSynthetic = "synthetic";
static constexpr double kLeastWeight = 1e-6, kMostWeight = 1e6;

namespace {

/// A text as an item without its files.
DataItem readItem(const std::string &text) {
  size_t colon = text.rfind(':');
  if (colon == text.npos || isThere(text))
    return {text, "", {}};
  const char *end = text.data() + text.size();
  double weight = 0.0;
  auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, weight);
  if (stopped != end || stopped == text.data() + colon + 1)
    return {text, "", {}};
  DataItem item{text.substr(0, colon), text.substr(colon + 1), {}};
  if (error != std::errc() || !(weight >= kLeastWeight) ||
      !(weight <= kMostWeight))
    throw InputError(
        fmt::format("'{}': expected a weight from {:f} to {:.0f}, got {}",
                    item.path, kLeastWeight, kMostWeight, item.weight));
  return item;
}

/// The weight of an item; 1: none.
double weightOf(const DataItem &item) {
  double weight = 1.0;
  std::from_chars(item.weight.data(), item.weight.data() + item.weight.size(),
                  weight);
  return weight;
}

/// Names of files that a folder does not stand for.
bool isLeftOut(const std::string &name) {
  return name.starts_with(".") || name.ends_with(kMaskEnding) ||
         name.ends_with(".idx");
}

std::vector<std::string> filesOf(const std::string &folder) {
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator();
       entries.increment(error)) {
    if (isLeftOut(entries->path().filename().string()))
      continue;
    std::string path = entries->path().string();
    if (std::error_code unknown; entries->is_directory(unknown))
      throw InputError(fmt::format(
          "'{}': expected a folder of files, got the folder '{}' in it", folder,
          path));
    files.push_back(path);
  }
  if (error)
    throw InputError(fmt::format("cannot read the folder '{}': {}", folder,
                                 error.message()));
  if (files.empty())
    throw InputError(fmt::format("'{}': the folder has no data files", folder));
  std::ranges::sort(files);
  return files;
}

/// Refuses a file that is there twice, under one name or two.
class Duplicates {
public:
  void add(const std::string &path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0)
      return; // opening the file says why
    auto [it, isNew] = paths.emplace(
        std::pair(uint64_t(status.st_dev), uint64_t(status.st_ino)), path);
    if (isNew)
      return;
    throw InputError(
        it->second == path
            ? fmt::format("'{}': the data has this file twice", path)
            : fmt::format("'{}' and '{}': the data has one file under both "
                          "names",
                          it->second, path));
  }

private:
  std::map<std::pair<uint64_t, uint64_t>, std::string> paths;
};

/// One source of all items.
std::vector<SourcePaths> join(std::vector<SourcePaths> sources) {
  for (size_t i = 1; i < sources.size(); ++i) {
    SourcePaths &first = sources.front(), &next = sources[i];
    if (first.files.empty() || next.files.empty())
      throw InputError("expected '--data synthetic' alone or with weights for "
                       "all of --data");
    first.files.insert(first.files.end(), next.files.begin(), next.files.end());
  }
  sources.resize(1);
  return sources;
}

} // namespace

std::vector<DataItem> findItems(const std::vector<std::string> &texts) {
  std::vector<DataItem> items;
  for (const std::string &text : texts) {
    DataItem item = readItem(text);
    std::error_code unknown;
    if (item.path != kSynthetic)
      item.files = fs::is_directory(item.path, unknown)
                       ? filesOf(item.path)
                       : std::vector<std::string>{item.path};
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<SourcePaths> findSources(const std::vector<std::string> &texts) {
  if (texts.empty())
    throw InputError("expected --data with at least one file");
  std::vector<SourcePaths> sources;
  size_t weighted = 0;
  Duplicates duplicates;
  for (DataItem &item : findItems(texts)) {
    weighted += !item.weight.empty();
    for (const std::string &file : item.files)
      duplicates.add(file);
    sources.push_back({item.path, std::llround(weightOf(item) / kLeastWeight),
                       std::move(item.files)});
  }
  if (weighted == 0)
    sources = join(std::move(sources));
  else if (weighted < sources.size())
    throw InputError(fmt::format("expected a weight after each of {} items of "
                                 "--data or after none, got {} weights",
                                 sources.size(), weighted));
  int64_t divisor = 0;
  for (const SourcePaths &source : sources)
    divisor = std::gcd(divisor, source.share);
  for (SourcePaths &source : sources)
    source.share /= divisor;
  return sources;
}

} // namespace rota
