// SPDX-License-Identifier: Apache-2.0
//
// Members of JSON that others wrote, which may be missing or of another type.
#ifndef ROTA_TOOLS_PLANNER_LOOSEJSON_H
#define ROTA_TOOLS_PLANNER_LOOSEJSON_H

#include "runtime/files/Nesting.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rota::json {

using Json = nlohmann::ordered_json;

/// The value of a text; null for one that is nested too deep, discarded for one
/// that is no JSON.
inline Json parseJson(std::string_view text) {
  if (findTooDeep(text) != text.npos)
    return nullptr;
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

/// The member of that name; null where `object` has none or is no object.
inline const Json &member(const Json &object, const std::string &name) {
  static const Json null;
  if (!object.is_object())
    return null;
  auto found = object.find(name);
  return found == object.end() ? null : *found;
}

/// The number of that name.
inline std::optional<double> number(const Json &object,
                                    const std::string &name) {
  const Json &value = member(object, name);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

/// The text of that name, or an empty one.
inline std::string text(const Json &object, const std::string &name) {
  const Json &value = member(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

} // namespace rota::json

#endif // ROTA_TOOLS_PLANNER_LOOSEJSON_H
