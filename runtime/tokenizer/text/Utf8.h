// SPDX-License-Identifier: Apache-2.0
//
// UTF-8: characters of a text, and the repair of broken bytes.
#ifndef ROTA_RUNTIME_TOKENIZER_UTF8_H
#define ROTA_RUNTIME_TOKENIZER_UTF8_H

#include <cstdint>
#include <string>
#include <string_view>

namespace rota {

/// What stands for a broken sequence of bytes: U+FFFD.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Bytes of the character that begins with `first`, in valid UTF-8.
inline int charBytes(char first) {
  uint8_t byte = static_cast<uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

/// Whether a character begins at that byte.
inline bool beginsChar(char byte) {
  return (static_cast<uint8_t>(byte) & 0xC0) != 0x80;
}

/// The character at `at`, which is moved to the next one. The text is valid.
inline char32_t nextChar(std::string_view text, size_t &at) {
  auto byte = [&](size_t n) {
    return static_cast<char32_t>(static_cast<uint8_t>(text[at + n]));
  };
  char32_t first = byte(0), c = first;
  int bytes = charBytes(text[at]);
  if (bytes == 2)
    c = (first & 0x1F) << 6 | (byte(1) & 0x3F);
  else if (bytes == 3)
    c = (first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  else if (bytes == 4)
    c = (first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 |
        (byte(3) & 0x3F);
  at += static_cast<size_t>(bytes);
  return c;
}

void appendChar(std::string &text, char32_t c);

/// The number of characters in a valid text.
int64_t countChars(std::string_view text);

/// Bytes at the beginning of `text` that are valid UTF-8.
size_t validBytes(std::string_view text);

/// The text with U+FFFD for each broken sequence, as Python's decode with
/// errors="replace" and Rust's from_utf8_lossy have it: one for the longest
/// beginning of a character, else one for a byte.
std::string repairUtf8(std::string_view text);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_UTF8_H
