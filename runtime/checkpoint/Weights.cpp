// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Weights.h"
#include "runtime/Error.h"
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

std::string tensorName(const Parameter &parameter, int64_t layer) {
  static constexpr std::string_view kLayer = "{layer}";
  std::string name = parameter.name;
  size_t at = name.find(kLayer);
  if (layer >= 0 && at != std::string::npos)
    name.replace(at, kLayer.size(), std::to_string(layer));
  return name;
}

Weights::Weights(const std::string &path, const Program &program) {
  std::filesystem::path place(path);
  if (std::filesystem::is_directory(place)) {
    const char *const *name =
        std::ranges::find_if(kWeightFiles, [&](const char *file) {
          return std::filesystem::exists(place / file);
        });
    if (name == std::end(kWeightFiles))
      throw InputError(fmt::format("'{}': expected one of the files {}", path,
                                   fmt::join(kWeightFiles, ", ")));
    place /= *name;
  }
  if (place.extension() == ".json")
    openIndex(place.string());
  else
    open(place.string());
  check(place.string(), program);
}

void Weights::open(const std::string &path) {
  files.push_back(std::make_unique<SafetensorsFile>(path));
  for (const auto &[name, view] : files.back()->tensors())
    if (!tensors.emplace(name, view).second)
      throw InputError(
          fmt::format("'{}': tensor '{}' is in another file too", path, name));
}

void Weights::openIndex(const std::string &path) {
  std::ifstream stream(path);
  std::stringstream text;
  text << stream.rdbuf();
  if (!stream)
    throw InputError(fmt::format("cannot read '{}'", path));
  auto index = nlohmann::json::parse(text.str(), nullptr, false);
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

void Weights::check(const std::string &path, const Program &program) {
  std::set<std::string> known;
  for (const Parameter &parameter : program.parameters) {
    std::vector<int64_t> layers = parameter.layers;
    if (layers.empty())
      layers.push_back(-1);
    for (int64_t layer : layers) {
      std::string name = tensorName(parameter, layer);
      known.insert(name);
      auto found = tensors.find(name);
      if (found == tensors.end())
        throw InputError(fmt::format("'{}': no tensor '{}'", path, name));
      const TensorView &view = found->second;
      if (view.shape != parameter.shape)
        throw InputError(fmt::format(
            "'{}': tensor '{}': expected shape {}, got {}", path, name,
            shapeText(parameter.shape), shapeText(view.shape)));
      if (!isFloat(view))
        throw InputError(
            fmt::format("'{}': tensor '{}': expected F32, F16 or BF16, got {}",
                        path, name, view.type));
    }
  }
  for (const auto &[name, view] : tensors)
    if (!known.count(name))
      unusedNames.push_back(name);
}

const TensorView &Weights::find(const Parameter &parameter,
                                int64_t layer) const {
  return tensors.at(tensorName(parameter, layer));
}

} // namespace rota
