// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/Weights.h"
#include "runtime/Error.h"
#include "runtime/program/TensorNames.h"

#include <algorithm>
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

Weights::Weights(const std::string &path, const Program &program)
    : place(path), hub(path) {
  check(program);
}

std::string Weights::describe() const {
  return fmt::format("{} tensors of '{}'",
                     hub.tensors().size() - unusedNames.size(), place);
}

void Weights::checkTensor(const std::string &name,
                          const std::vector<int64_t> &shape) const {
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

void Weights::check(const Program &program) {
  std::set<std::string> known;
  for (const Parameter &parameter : program.parameters) {
    std::vector<int64_t> layers = parameter.layers;
    if (layers.empty())
      layers.push_back(-1);
    for (int64_t layer : layers) {
      StoredTensors stored = storedTensors(parameter, layer);
      for (const std::string &name : stored.names) {
        hub.findBareName(name);
        checkTensor(name, stored.shape);
        known.insert(name);
      }
    }
  }
  for (const auto &[name, tensor] : hub.tensors())
    if (!known.count(name))
      unusedNames.push_back(name);
}

StoredParameter Weights::find(const Parameter &parameter, int64_t layer) const {
  std::vector<const StoredTensor *> parts;
  for (const std::string &name : storedTensors(parameter, layer).names)
    parts.push_back(hub.find(name));
  return StoredParameter(std::move(parts));
}

} // namespace rota
