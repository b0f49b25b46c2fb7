// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Weights.h"
#include "runtime/Error.h"
#include "runtime/program/AdapterNames.h"
#include "runtime/program/TensorNames.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <set>

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

Weights::Weights(const std::string &path, const Program &program,
                 const std::string &folder)
    : place(path), hub(path) {
  if (!folder.empty())
    adapter.emplace((std::filesystem::path(folder) / kAdapterFile).string());
  check(program);
  if (adapter)
    checkAdapter(program);
}

std::string Weights::describe() const {
  return fmt::format("{} tensors of '{}'",
                     hub.tensors().size() - unusedNames.size(), place);
}

void Weights::checkTensor(const HubTensors &hub, const std::string &name,
                          const std::vector<int64_t> &shape) {
  const StoredTensor *tensor = hub.find(name);
  if (!tensor)
    throw InputError(fmt::format("'{}': no tensor '{}'", hub.file(), name));
  if (tensor->shape != shape)
    throw InputError(fmt::format("'{}': tensor '{}': expected shape {}, got {}",
                                 hub.file(), name, shapeText(shape),
                                 shapeText(tensor->shape)));
  if (!tensor->isFloat())
    throw InputError(fmt::format(
        "'{}': tensor '{}': expected F32, F16, BF16, or F8_E4M3 with "
        "'{}_scale_inv' beside it, got {}",
        hub.file(), name, name, tensor->type()));
}

/// Calls visit(tensors) for each layer that has the parameter, or once.
template <typename Visit>
static void forEachLayer(const Parameter &parameter, Visit visit) {
  if (parameter.layers.empty())
    visit(storedTensors(parameter, -1));
  for (int64_t layer : parameter.layers)
    visit(storedTensors(parameter, layer));
}

void Weights::check(const Program &program) {
  std::set<std::string> known;
  for (const Parameter &parameter : program.parameters) {
    bool isAdapted = isAdapter(parameter.name);
    if (isAdapted && adapter)
      continue;
    forEachLayer(parameter, [&](const StoredTensors &stored) {
      for (const std::string &name : stored.names) {
        hub.findBareName(name);
        if (isAdapted && !hub.find(name))
          continue;
        checkTensor(hub, name, stored.shape);
        known.insert(name);
      }
    });
  }
  for (const auto &[name, tensor] : hub.tensors())
    if (!known.count(name))
      unusedNames.push_back(name);
}

void Weights::checkAdapter(const Program &program) {
  std::set<std::string> known;
  for (const Parameter &parameter : program.parameters)
    if (isAdapter(parameter.name))
      forEachLayer(parameter, [&](const StoredTensors &stored) {
        std::string name = kAdapterPrefix + stored.names.front();
        checkTensor(*adapter, name, stored.shape);
        known.insert(name);
      });
  for (const auto &[name, tensor] : adapter->tensors())
    if (!known.count(name))
      throw InputError(fmt::format(
          "'{}': tensor '{}': expected an adapter of the model's, which has "
          "none of that name",
          adapter->file(), name));
}

std::optional<StoredParameter> Weights::find(const Parameter &parameter,
                                             int64_t layer) const {
  bool isOfAdapter = adapter && isAdapter(parameter.name);
  std::vector<const StoredTensor *> parts;
  for (const std::string &name : storedTensors(parameter, layer).names) {
    parts.push_back(isOfAdapter ? adapter->find(kAdapterPrefix + name)
                                : hub.find(name));
    if (!parts.back())
      return std::nullopt;
  }
  return StoredParameter(std::move(parts));
}

} // namespace rota
