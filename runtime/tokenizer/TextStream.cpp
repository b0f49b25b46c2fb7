// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/TextStream.h"
#include "runtime/tokenizer/Utf8.h"

#include <algorithm>

namespace rota {

std::string TextStream::take(const std::string &text) {
  auto [end, unused] = std::ranges::mismatch(text, last);
  std::string added(end, text.end());
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(told));
  told = tokens.size();
  last = tokenizer.decode(tokens, skipSpecial);
  return added;
}

std::string TextStream::add(std::span<const int32_t> more) {
  constexpr size_t kMostWaiting = 1 << 16; // of a text of broken characters
  tokens.insert(tokens.end(), more.begin(), more.end());
  std::string text = tokenizer.decode(tokens, skipSpecial);
  if (text.ends_with(kReplacement) && tokens.size() - told < kMostWaiting)
    return {};
  return take(text);
}

std::string TextStream::finish() {
  if (tokens.size() == told)
    return {};
  return take(tokenizer.decode(tokens, skipSpecial));
}

} // namespace rota
