// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/files/CutText.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>

namespace rota {

namespace {

bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool isSpaceByte(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool isAscii(char c) { return static_cast<uint8_t>(c) < 0x80; }

/// A line break after text and before a letter.
bool isLineEnd(std::string_view bytes, size_t place) {
  return bytes[place - 1] == '\n' && !isSpaceByte(bytes[place - 2]) &&
         isLetter(bytes[place]);
}

/// A space between letters, which belongs to the word after it.
bool isWordEnd(std::string_view bytes, size_t place) {
  return isLetter(bytes[place - 1]) && bytes[place] == ' ' &&
         isLetter(bytes[place + 1]);
}

/// Punctuation before a letter, or that of Chinese and Japanese before any
/// character.
bool isPunctuationEnd(std::string_view bytes, size_t place) {
  char last = bytes[place - 1];
  if (isAscii(last))
    return isAscii(bytes[place - 2]) && !isLetter(last) && !isSpaceByte(last) &&
           !(last >= '0' && last <= '9') && isLetter(bytes[place]);
  std::string_view c = bytes.substr(place - 3, 3);
  return (c == "\xE3\x80\x82" || c == "\xEF\xBC\x8C" || c == "\xE3\x80\x81") &&
         beginsChar(bytes[place]);
}

} // namespace

bool TextCutter::isHarmless(std::string_view bytes, size_t place) {
  size_t begin = place - std::min(place, kWindow);
  size_t end = std::min(bytes.size(), place + kWindow);
  // The window begins and ends between characters.
  while (begin > 0 && begin < place && !beginsChar(bytes[begin]))
    ++begin;
  while (end < bytes.size() && end > place && !beginsChar(bytes[end]))
    --end;
  auto encode = [&](size_t from, size_t to, std::vector<int32_t> &tokens) {
    std::string text = repairUtf8(bytes.substr(from, to - from));
    encoder->encode(text, TextPlace::Inside, tokens);
  };
  whole.clear();
  parts.clear();
  encode(begin, end, whole);
  encode(begin, place, parts);
  encode(place, end, parts);
  return whole == parts;
}

size_t TextCutter::find(std::string_view bytes, size_t least) {
  constexpr size_t kMargin = 3; // bytes that are looked at beside a place
  constexpr int kMostTries = 16;
  least = std::max(least, kMargin);
  if (bytes.size() < least + kWindow)
    return 0;
  for (auto isCandidate : {isLineEnd, isWordEnd, isPunctuationEnd}) {
    int tries = 0;
    for (size_t place = least;
         place + kWindow <= bytes.size() && tries < kMostTries; ++place)
      if (isCandidate(bytes, place)) {
        if (isHarmless(bytes, place))
          return place;
        ++tries;
      }
  }
  return 0;
}

} // namespace rota
