// SPDX-License-Identifier: Apache-2.0
#include "tools/planner/LooseJson.h"

#include "runtime/files/Nesting.h"

namespace rota::json {

Json parseJson(std::string_view text) {
  if (findTooDeep(text) != text.npos)
    return nullptr;
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

const Json &member(const Json &object, const std::string &name) {
  static const Json null;
  if (!object.is_object())
    return null;
  auto found = object.find(name);
  return found == object.end() ? null : *found;
}

std::optional<double> number(const Json &object, const std::string &name) {
  const Json &value = member(object, name);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string text(const Json &object, const std::string &name) {
  const Json &value = member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

} // namespace rota::json
