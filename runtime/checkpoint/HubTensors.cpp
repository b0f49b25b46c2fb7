// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/HubTensors.h"
#include "runtime/Error.h"
#include "runtime/files/Nesting.h"
#include "runtime/program/WeightFiles.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

namespace rota {

HubTensors::HubTensors(const std::string &path) {
  std::filesystem::path file(path);
  std::error_code unknown; // Opening the file says why.
  if (std::filesystem::is_directory(file, unknown)) {
    const char *const *name =
        std::ranges::find_if(kWeightFiles, [&](const char *name) {
          return std::filesystem::exists(file / name, unknown);
        });
    if (name == std::end(kWeightFiles))
      throw InputError(fmt::format("'{}': expected one of the files {}", path,
                                   fmt::join(kWeightFiles, ", ")));
    file /= *name;
  }
  filePath = file.string();
  if (file.extension() == ".json")
    openIndex();
  else
    open(filePath);
  found = storedTensorsOf(views, [&](const std::string &name,
                                     const std::string &why) {
    throw InputError(fmt::format("'{}': tensor '{}': {}", filePath, name, why));
  });
}

const StoredTensor *HubTensors::find(const std::string &name) const {
  auto tensor = found.find(name);
  return tensor == found.end() ? nullptr : &tensor->second;
}

void HubTensors::open(const std::string &path) {
  files.push_back(std::make_unique<SafetensorsFile>(path));
  for (const auto &[name, view] : files.back()->tensors())
    if (!views.emplace(name, view).second)
      throw InputError(
          fmt::format("'{}': tensor '{}' is in another file too", path, name));
}

void HubTensors::openIndex() {
  const std::string &path = filePath;
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw InputError(fmt::format("cannot read '{}'", path));
  if (std::string mistake = nestingMistake(text.view()); !mistake.empty())
    throw InputError(fmt::format("'{}': {}", path, mistake));
  auto index = nlohmann::json::parse(text.view(), nullptr, false);
  if (!index.is_object() || !index.contains("weight_map") ||
      !index["weight_map"].is_object())
    throw InputError(
        fmt::format("'{}': expected an object 'weight_map'", path));
  std::set<std::string> names;
  for (const auto &[tensor, file] : index["weight_map"].items()) {
    // A path could name a file outside of the folder.
    if (!file.is_string() ||
        file.get<std::string>().find('/') != std::string::npos)
      throw InputError(
          fmt::format("'{}': expected the name of a file beside it for '{}'",
                      path, tensor));
    names.insert(file.get<std::string>());
  }
  for (const std::string &name : names)
    open((std::filesystem::path(path).parent_path() / name).string());
}

void HubTensors::findBareName(const std::string &name) {
  size_t dot = name.find('.');
  if (dot == std::string::npos || found.contains(name))
    return;
  std::string bare = name.substr(dot + 1);
  if (bare.find('.') == std::string::npos)
    return;
  if (auto tensor = found.extract(bare)) {
    tensor.key() = name;
    found.insert(std::move(tensor));
  }
}

} // namespace rota
