// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/TokenOrigin.h"
#include "runtime/checkpoint/Hash.h"
#include "runtime/data/DataFile.h"

#include <charconv>
#include <fmt/format.h>
#include <string_view>

namespace rota {

static constexpr std::string_view kMagic = "\x93NUMPY";
static constexpr std::string_view kComment = "# tokenizer ";
static constexpr std::string_view kVocabulary = ", vocabulary ";

std::string originComment(const TokenOrigin &origin) {
  return fmt::format("{}{}{}{}", kComment, hexadecimal(origin.hash),
                     kVocabulary, origin.vocabulary);
}

std::optional<TokenOrigin> readTokenOrigin(const std::string &path) {
  DataFile file(path, /*keepOpen=*/false);
  if (file.bytes() < kOriginHeaderBytes)
    return std::nullopt;
  std::string header(kOriginHeaderBytes, '\0');
  file.read(0, kOriginHeaderBytes, header.data());
  std::string_view rest = header;
  size_t comment = rest.find(kComment);
  if (!rest.starts_with(kMagic) || comment == rest.npos)
    return std::nullopt;
  rest.remove_prefix(comment + kComment.size());
  TokenOrigin origin;
  const char *end = header.data() + header.size();
  auto hash = std::from_chars(rest.data(), end, origin.hash, 16);
  rest.remove_prefix(static_cast<size_t>(hash.ptr - rest.data()));
  if (hash.ec != std::errc() || !rest.starts_with(kVocabulary))
    return std::nullopt;
  auto size =
      std::from_chars(rest.data() + kVocabulary.size(), end, origin.vocabulary);
  return size.ec == std::errc() ? std::optional(origin) : std::nullopt;
}

} // namespace rota
