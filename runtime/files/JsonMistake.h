// SPDX-License-Identifier: Apache-2.0
//
// Errors in texts of JSON.
#ifndef ROTA_RUNTIME_FILES_JSONMISTAKE_H
#define ROTA_RUNTIME_FILES_JSONMISTAKE_H

#include <string>
#include <string_view>

namespace rota {

/// A message from `what` of an exception of nlohmann::json: "expected JSON:
/// parse error at ...", without the number of the exception, which it begins
/// with: "[json.exception.parse_error.101] parse error at ...".
inline std::string jsonMistake(std::string_view what) {
  size_t end = what.find("] ");
  return "expected JSON: " +
         std::string(end == what.npos ? what : what.substr(end + 2));
}

} // namespace rota

#endif // ROTA_RUNTIME_FILES_JSONMISTAKE_H
