// SPDX-License-Identifier: Apache-2.0
#include "runtime/program/TensorNames.h"

namespace rota {

/// The first placeholder at or after `from`, braces included; empty when there
/// is none.
static std::string_view nextPlaceholder(std::string_view name, size_t from) {
  size_t begin = name.find('{', from);
  size_t end = name.find('}', begin);
  if (end == std::string_view::npos)
    return {};
  return name.substr(begin, end + 1 - begin);
}

static std::string replaceFirst(const std::string &name, int64_t index) {
  std::string result = name;
  if (std::string_view found = nextPlaceholder(name, 0); !found.empty())
    result.replace(found.data() - name.data(), found.size(),
                   std::to_string(index));
  return result;
}

const std::string &fileName(const Parameter &parameter) {
  return parameter.joined.name.empty() ? parameter.name : parameter.joined.name;
}

std::vector<int64_t> fileShape(const Parameter &parameter) {
  std::vector<int64_t> shape = parameter.shape;
  if (!parameter.joined.name.empty())
    shape[parameter.joined.dimension] = parameter.joined.size;
  return shape;
}

std::string withLayer(const std::string &name, int64_t layer) {
  return replaceFirst(name, layer);
}

std::string tensorName(const Parameter &parameter, int64_t layer) {
  const std::string &name = fileName(parameter);
  return layer < 0 ? name : withLayer(name, layer);
}

size_t namedDimensions(const Parameter &parameter) {
  return placeholders(fileName(parameter)) - (parameter.layers.empty() ? 0 : 1);
}

StoredTensors storedTensors(const Parameter &parameter, int64_t layer) {
  StoredTensors stored{{tensorName(parameter, layer)}, fileShape(parameter)};
  for (size_t left = namedDimensions(parameter); left > 0; --left) {
    std::vector<std::string> names;
    for (const std::string &name : stored.names)
      for (int64_t index = 0; index < stored.shape.front(); ++index)
        names.push_back(replaceFirst(name, index));
    stored.names = std::move(names);
    stored.shape.erase(stored.shape.begin());
  }
  return stored;
}

} // namespace rota
