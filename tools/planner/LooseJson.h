// SPDX-License-Identifier: Apache-2.0
//
// Members of JSON that others wrote, which may be missing or of another type.
#ifndef ROTA_TOOLS_PLANNER_LOOSEJSON_H
#define ROTA_TOOLS_PLANNER_LOOSEJSON_H

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace rota::json {

using Json = nlohmann::ordered_json;

/// The value of a text; null for one that is nested too deep, discarded for one
/// that is no JSON.
Json parseJson(std::string_view text);

/// The member of that name; null where `object` has none or is no object.
const Json &member(const Json &object, const std::string &name);

/// The number of that name.
std::optional<double> number(const Json &object, const std::string &name);

/// The text of that name, or an empty one.
std::string text(const Json &object, const std::string &name);

} // namespace rota::json

#endif // ROTA_TOOLS_PLANNER_LOOSEJSON_H
