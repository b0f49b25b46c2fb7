// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/TextStream.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>

namespace rota {

std::string TextStream::take(const std::string &text, size_t count) {
  auto [end, unused] = std::ranges::mismatch(text, last);
  std::string added(end, text.end());
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(told));
  told = count - told;
  last = tokenizer.decode(std::span(tokens).first(told), skipSpecial);
  return added;
}

std::string TextStream::add(std::span<const int32_t> more) {
  constexpr size_t kMostWaiting = 1 << 16; // of a text of broken characters
  constexpr size_t kMostOfCharacter = 8;   // tokens that a character may have
  tokens.insert(tokens.end(), more.begin(), more.end());
  for (size_t left = 0; left < kMostOfCharacter; ++left) {
    size_t count = tokens.size() - left;
    if (count <= told)
      return {};
    std::string text =
        tokenizer.decode(std::span(tokens).first(count), skipSpecial);
    if (!text.ends_with(kReplacement))
      return take(text, count);
  }
  if (tokens.size() - told < kMostWaiting)
    return {};
  return take(tokenizer.decode(tokens, skipSpecial), tokens.size());
}

std::string TextStream::finish() {
  if (tokens.size() == told)
    return {};
  return take(tokenizer.decode(tokens, skipSpecial), tokens.size());
}

} // namespace rota
