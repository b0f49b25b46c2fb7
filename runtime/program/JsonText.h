// SPDX-License-Identifier: Apache-2.0
//
// JSON as text. Names of files and folders are bytes, and JSON is UTF-8: bytes
// that are not UTF-8 become U+FFFD, here and nowhere else.
#ifndef ROTA_RUNTIME_PROGRAM_JSONTEXT_H
#define ROTA_RUNTIME_PROGRAM_JSONTEXT_H

#include <nlohmann/json.hpp>
#include <string>

namespace rota {

/// `value` in one line, or with `indent` spaces for each level.
std::string jsonText(const nlohmann::json &value, int indent = -1);
std::string jsonText(const nlohmann::ordered_json &value, int indent = -1);

/// The text that a reader of the JSON of `bytes` gets.
std::string textInJson(const std::string &bytes);

} // namespace rota

#endif // ROTA_RUNTIME_PROGRAM_JSONTEXT_H
