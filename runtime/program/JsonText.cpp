// SPDX-License-Identifier: Apache-2.0
#include "runtime/program/JsonText.h"

namespace rota {

namespace {
template <typename Json> std::string text(const Json &value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false,
                    Json::error_handler_t::replace);
}
} // namespace

std::string jsonText(const nlohmann::json &value, int indent) {
  return text(value, indent);
}

std::string jsonText(const nlohmann::ordered_json &value, int indent) {
  return text(value, indent);
}

std::string textInJson(const std::string &bytes) {
  nlohmann::json value = bytes;
  return nlohmann::json::parse(jsonText(value)).get<std::string>();
}

} // namespace rota
