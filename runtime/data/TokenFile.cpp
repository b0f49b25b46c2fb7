// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/TokenFile.h"
#include "runtime/Error.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <vector>

namespace rota {

std::string TokenBounds::violation(int64_t token, bool isInput,
                                   bool isTarget) const {
  if (isInput && (token < 0 || token >= vocabulary))
    return fmt::format("the vocabulary of {}", vocabulary);
  if (isTarget && (token < 0 || token >= classes))
    return fmt::format("the {} classes of the loss", classes);
  return "";
}

/// Number `i` of packed numbers of type T.
template <typename T> static int64_t packed(const char *bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes + i * int64_t(sizeof value), sizeof value);
  return static_cast<int64_t>(value);
}

static int64_t tokenAt(const char *bytes, TokenType type, int64_t i) {
  switch (type) {
  case TokenType::Bytes:
    return packed<uint8_t>(bytes, i);
  case TokenType::Uint16:
    return packed<uint16_t>(bytes, i);
  case TokenType::Uint32:
    return packed<uint32_t>(bytes, i);
  case TokenType::Int32:
    return packed<int32_t>(bytes, i);
  case TokenType::Int64:
    return packed<int64_t>(bytes, i);
  }
  return 0;
}

TokenFile::TokenFile(const std::string &path, std::optional<TokenType> asked,
                     TokenBounds bounds, bool keepOpen)
    : file(path, keepOpen), layout(findTokens(file, asked)), bounds(bounds) {
  std::string maskPath = path + kMaskEnding;
  if (!isThere(maskPath))
    return;
  mask.emplace(maskPath, keepOpen);
  if (mask->bytes() != layout.tokens)
    throw InputError(fmt::format(
        "'{}': expected {} bytes, one for each token of '{}', got {}", maskPath,
        layout.tokens, path, mask->bytes()));
}

void TokenFile::read(int64_t begin, int64_t count, TokenRole role,
                     int32_t *out) const {
  const int64_t unit = tokenBytes(layout.type);
  std::vector<char> bytes(static_cast<size_t>(count * unit)), counts;
  file.read(layout.offset + begin * unit, count * unit, bytes.data());
  bool isTarget = role == TokenRole::Target;
  if (mask && isTarget) {
    counts.resize(static_cast<size_t>(count));
    mask->read(begin, count, counts.data());
  }
  const int64_t bound = isTarget ? bounds.classes : bounds.vocabulary;
  for (int64_t i = 0; i < count; ++i) {
    if (!counts.empty() && counts[static_cast<size_t>(i)] == 0) {
      out[i] = kNoTarget;
      continue;
    }
    int64_t token = tokenAt(bytes.data(), layout.type, i);
    if (token < 0 || token >= bound)
      throw InputError(fmt::format(
          "'{}': position {}: expected a token below {}, got {}", file.path(),
          begin + i, bounds.violation(token, !isTarget, isTarget), token));
    out[i] = static_cast<int32_t>(token);
  }
}

void TokenFile::check() const {
  if (isBelow(layout.type, std::min(bounds.vocabulary, bounds.classes)))
    return;
  constexpr int64_t kBlock = 1 << 16;
  std::vector<int32_t> tokens(static_cast<size_t>(std::min(kBlock, size())));
  for (int64_t begin = 0; begin < size(); begin += kBlock) {
    int64_t count = std::min(kBlock, size() - begin);
    for (TokenRole role : {TokenRole::Input, TokenRole::Target})
      read(begin, count, role, tokens.data());
  }
}

} // namespace rota
