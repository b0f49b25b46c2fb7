// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>
#include <cstring>

namespace rota {

void appendChar(std::string &text, char32_t c) {
  auto add = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (c < 0x80) {
    add(c);
  } else if (c < 0x800) {
    add(0xC0 | c >> 6);
    add(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12);
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  } else {
    add(0xF0 | c >> 18);
    add(0x80 | (c >> 12 & 0x3F));
    add(0x80 | (c >> 6 & 0x3F));
    add(0x80 | (c & 0x3F));
  }
}

int64_t countChars(std::string_view text) {
  return std::count_if(text.begin(), text.end(), beginsChar);
}

namespace {

/// A sequence at the beginning of a text: bytes that belong together, and
/// whether they are a whole character.
struct Sequence {
  size_t bytes;
  bool whole;
};

/// The table 3-7 of the Unicode standard. `text` is not empty.
Sequence sequenceOf(std::string_view text) {
  uint8_t first = static_cast<uint8_t>(text[0]);
  if (first < 0x80)
    return {1, true};
  if (first < 0xC2 || first > 0xF4)
    return {1, false};
  size_t bytes = static_cast<size_t>(charBytes(text[0]));
  uint8_t low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  uint8_t high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (size_t n = 1; n < bytes; ++n) {
    if (n == text.size())
      return {n, false};
    uint8_t byte = static_cast<uint8_t>(text[n]);
    if (byte < low || byte > high)
      return {n, false};
    low = 0x80;
    high = 0xBF;
  }
  return {bytes, true};
}

} // namespace

size_t validBytes(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t word;
    if (at + sizeof word <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof word;
        continue;
      }
    }
    Sequence sequence = sequenceOf(text.substr(at));
    if (!sequence.whole)
      break;
    at += sequence.bytes;
  }
  return at;
}

std::string repairUtf8(std::string_view text) {
  std::string repaired;
  while (!text.empty()) {
    size_t valid = validBytes(text);
    repaired += text.substr(0, valid);
    text.remove_prefix(valid);
    if (text.empty())
      break;
    repaired += kReplacement;
    text.remove_prefix(sequenceOf(text).bytes);
  }
  return repaired;
}

} // namespace rota
