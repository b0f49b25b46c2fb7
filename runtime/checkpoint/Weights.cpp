// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Weights.h"
#include "runtime/Error.h"
#include "runtime/files/Nesting.h"
#include "runtime/program/TensorNames.h"
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

void StoredParameter::readFloats(int64_t begin, int64_t end, float *out) const {
  int64_t size = parts.front()->elements();
  while (begin < end) {
    int64_t part = begin / size, first = begin % size;
    int64_t last = std::min(size, first + end - begin);
    rota::readFloats(*parts[part], first, last, out);
    out += last - first;
    begin += last - first;
  }
}

Weights::Weights(const std::string &path, const Program &program)
    : place(path) {
  std::filesystem::path file(path);
  if (std::filesystem::is_directory(file)) {
    const char *const *name =
        std::ranges::find_if(kWeightFiles, [&](const char *name) {
          return std::filesystem::exists(file / name);
        });
    if (name == std::end(kWeightFiles))
      throw InputError(fmt::format("'{}': expected one of the files {}", path,
                                   fmt::join(kWeightFiles, ", ")));
    file /= *name;
  }
  if (file.extension() == ".json")
    openIndex(file.string());
  else
    open(file.string());
  check(file.string(), program);
}

std::string Weights::describe() const {
  return fmt::format("{} tensors of '{}'", tensors.size() - unusedNames.size(),
                     place);
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

void Weights::findBareName(const std::string &name) {
  size_t dot = name.find('.');
  if (dot == std::string::npos || tensors.count(name))
    return;
  std::string bare = name.substr(dot + 1);
  if (bare.find('.') == std::string::npos)
    return;
  if (auto found = tensors.extract(bare)) {
    found.key() = name;
    tensors.insert(std::move(found));
  }
}

void Weights::checkTensor(const std::string &path, const std::string &name,
                          const std::vector<int64_t> &shape) const {
  auto found = tensors.find(name);
  if (found == tensors.end())
    throw InputError(fmt::format("'{}': no tensor '{}'", path, name));
  const TensorView &view = found->second;
  if (view.shape != shape)
    throw InputError(fmt::format("'{}': tensor '{}': expected shape {}, got {}",
                                 path, name, shapeText(shape),
                                 shapeText(view.shape)));
  if (!isFloat(view))
    throw InputError(
        fmt::format("'{}': tensor '{}': expected F32, F16 or BF16, got {}",
                    path, name, view.type));
}

void Weights::check(const std::string &path, const Program &program) {
  std::set<std::string> known;
  for (const Parameter &parameter : program.parameters) {
    std::vector<int64_t> layers = parameter.layers;
    if (layers.empty())
      layers.push_back(-1);
    for (int64_t layer : layers) {
      StoredTensors stored = storedTensors(parameter, layer);
      for (const std::string &name : stored.names) {
        findBareName(name);
        checkTensor(path, name, stored.shape);
        known.insert(name);
      }
    }
  }
  for (const auto &[name, view] : tensors)
    if (!known.count(name))
      unusedNames.push_back(name);
}

StoredParameter Weights::find(const Parameter &parameter, int64_t layer) const {
  std::vector<const TensorView *> parts;
  for (const std::string &name : storedTensors(parameter, layer).names)
    parts.push_back(&tensors.at(name));
  return StoredParameter(std::move(parts));
}

} // namespace rota
