// SPDX-License-Identifier: Apache-2.0
//
// The types of a token in a file, in little endian.
#ifndef ROTA_RUNTIME_DATA_TOKENTYPE_H
#define ROTA_RUNTIME_DATA_TOKENTYPE_H

#include "runtime/text/Names.h"

#include <cstdint>

namespace rota {

enum class TokenType { Bytes, Uint16, Uint32, Int32, Int64 };
template <> struct Names<TokenType> {
  static constexpr const char *list[] = {"bytes", "uint16", "uint32", "int32",
                                         "int64"};
};

/// Bytes of a token.
constexpr int64_t tokenBytes(TokenType type) {
  constexpr int64_t bytes[] = {1, 2, 4, 4, 8};
  return bytes[static_cast<int>(type)];
}

/// True when every number of the type is at least 0 and below `bound`.
constexpr bool isBelow(TokenType type, int64_t bound) {
  bool isSigned = type == TokenType::Int32 || type == TokenType::Int64;
  return !isSigned && bound >= int64_t(1) << (8 * tokenBytes(type));
}

} // namespace rota

#endif // ROTA_RUNTIME_DATA_TOKENTYPE_H
