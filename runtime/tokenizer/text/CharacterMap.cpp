// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/CharacterMap.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <unicode/brkiter.h>
#include <unicode/utext.h>

namespace rota {

/// The bytes of base64; nothing when there is another character.
static std::optional<std::string> fromBase64(std::string_view text) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('='))
    text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos)
      return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xFF);
    }
  }
  return bytes;
}

CharacterMap::CharacterMap(const JsonNode &node) {
  std::optional<std::string> bytes = fromBase64(node.text());
  if (!bytes)
    node.fail("base64");
  table = std::make_shared<CharacterTable>(*bytes, node.where());
}

void CharacterMap::applyTo(std::string_view cluster, std::string &out) const {
  constexpr size_t kMostBytes = 6;
  if (cluster.size() < kMostBytes)
    if (const char *text = table->find(cluster)) {
      out += text;
      return;
    }
  for (size_t at = 0; at < cluster.size();) {
    size_t bytes = static_cast<size_t>(charBytes(cluster[at]));
    std::string_view c = cluster.substr(at, bytes);
    if (const char *text = table->find(c))
      out += text;
    else
      out += c;
    at += bytes;
  }
}

/// A cluster of one byte: before another byte of ASCII, no line break in two.
static bool isAlone(std::string_view text, size_t at) {
  auto isAscii = [&](size_t n) { return static_cast<uint8_t>(text[n]) < 0x80; };
  return isAscii(at) && text[at] != '\r' &&
         (at + 1 == text.size() || isAscii(at + 1));
}

void CharacterMap::apply(std::string &text) const {
  UErrorCode error = U_ZERO_ERROR;
  std::unique_ptr<icu::BreakIterator> clusters;
  UText source = UTEXT_INITIALIZER;
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    if (!isAlone(text, at)) {
      if (!clusters) {
        clusters.reset(icu::BreakIterator::createCharacterInstance(
            icu::Locale::getRoot(), error));
        utext_openUTF8(&source, text.data(), static_cast<int64_t>(text.size()),
                       &error);
        if (U_FAILURE(error))
          return;
        clusters->setText(&source, error);
      }
      end = static_cast<size_t>(clusters->following(static_cast<int32_t>(at)));
    }
    applyTo(std::string_view(text).substr(at, end - at), out);
    at = end;
  }
  utext_close(&source);
  text = std::move(out);
}

} // namespace rota
