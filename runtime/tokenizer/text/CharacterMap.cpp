// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/CharacterMap.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <cstring>
#include <fmt/format.h>
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
  auto read = std::make_shared<Table>();
  uint32_t size = 0;
  if (bytes->size() >= sizeof size)
    std::memcpy(&size, bytes->data(), sizeof size);
  if (bytes->size() < sizeof size || size > bytes->size() - sizeof size ||
      size % sizeof(uint32_t) != 0)
    node.refuse(fmt::format("expected a table whose first 4 bytes are the size "
                            "of its trie, got {} in {} bytes",
                            size, bytes->size()));
  read->units.resize(size / sizeof(uint32_t));
  std::memcpy(read->units.data(), bytes->data() + sizeof size, size);
  read->texts = bytes->substr(sizeof size + size);
  if (validBytes(read->texts) != read->texts.size())
    node.refuse("expected replacements in UTF-8");
  read->texts += '\0';
  table = std::move(read);
}

const char *CharacterMap::find(std::string_view chunk) const {
  const std::vector<uint32_t> &units = table->units;
  auto offset = [](uint32_t unit) {
    return (unit >> 10) << ((unit & 0x200) >> 6);
  };
  if (units.empty())
    return nullptr;
  uint32_t place = offset(units[0]);
  for (char c : chunk) {
    uint32_t byte = static_cast<uint8_t>(c);
    place ^= byte;
    if (byte == 0 || place >= units.size() ||
        (units[place] & 0x800000FF) != byte)
      return nullptr;
    uint32_t unit = units[place];
    place ^= offset(unit);
    if (unit & 0x100) {
      if (place >= units.size())
        return nullptr;
      uint32_t text = units[place] & 0x7FFFFFFF;
      return text < table->texts.size() && beginsChar(table->texts[text])
                 ? table->texts.data() + text
                 : nullptr;
    }
  }
  return nullptr;
}

void CharacterMap::applyTo(std::string_view cluster, std::string &out) const {
  constexpr size_t kMostBytes = 6;
  if (cluster.size() < kMostBytes)
    if (const char *text = find(cluster)) {
      out += text;
      return;
    }
  for (size_t at = 0; at < cluster.size();) {
    size_t bytes = static_cast<size_t>(charBytes(cluster[at]));
    std::string_view c = cluster.substr(at, bytes);
    if (const char *text = find(c))
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
