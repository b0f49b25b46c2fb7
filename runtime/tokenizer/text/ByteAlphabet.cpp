// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/ByteAlphabet.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <array>

namespace rota {

namespace {

constexpr char32_t kOthers =
    0x100; // characters of bytes that are not printable

struct Alphabet {
  std::array<std::string, 256> chars;
  std::array<int, 2 * kOthers> bytes; // -1: not of the alphabet

  Alphabet() {
    bytes.fill(-1);
    char32_t next = kOthers;
    for (char32_t byte = 0; byte < 256; ++byte) {
      bool isPrintable =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
      char32_t c = isPrintable ? byte : next++;
      appendChar(chars[byte], c);
      bytes[c] = static_cast<int>(byte);
    }
  }
};

const Alphabet &alphabet() {
  static const Alphabet alphabet;
  return alphabet;
}

} // namespace

std::string toAlphabet(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (char byte : bytes)
    text += alphabet().chars[static_cast<uint8_t>(byte)];
  return text;
}

std::optional<std::string> fromAlphabet(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    char32_t c = nextChar(text, at);
    int byte = c < alphabet().bytes.size() ? alphabet().bytes[c] : -1;
    if (byte < 0)
      return std::nullopt;
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

} // namespace rota
