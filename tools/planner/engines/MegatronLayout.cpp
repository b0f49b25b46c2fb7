// SPDX-License-Identifier: Apache-2.0
//
// Layouts of layers as Megatron writes them: E the embedding, t a layer, L the
// loss, | between chunks, x*n and (...)*n for repetitions.
#include "tools/planner/engines/Megatron.h"

#include <charconv>

namespace rota::engines::megatron {

/// Characters of an expanded layout, at most.
static constexpr size_t kMostCharacters = size_t(1) << 20;

/// "t*9", or "tt" where that is as short.
static std::string layersText(int64_t count) {
  return count > 3 ? "t*" + std::to_string(count)
                   : std::string(size_t(count), 't');
}

std::string layoutText(const std::vector<int64_t> &layers) {
  std::string text = "E" + layersText(layers.front()) + "|";
  for (size_t at = 1; at + 1 < layers.size();) {
    size_t end = at;
    while (end + 1 < layers.size() && layers[end] == layers[at])
      ++end;
    std::string chunk = layersText(layers[at]) + "|";
    text +=
        end - at == 1 ? chunk : "(" + chunk + ")*" + std::to_string(end - at);
    at = end;
  }
  return text + layersText(layers.back()) + "L";
}

/// The number after "*" at `at`, which moves to the end of it; `otherwise`
/// where there is no "*". 0: a mistake.
static size_t takeFactor(const std::string &text, size_t &at,
                         size_t otherwise) {
  if (at >= text.size() || text[at] != '*')
    return otherwise;
  size_t factor = 0;
  const char *begin = text.data() + at + 1;
  auto [end, code] = std::from_chars(begin, text.data() + text.size(), factor);
  at = size_t(end - text.data());
  return code == std::errc() && factor <= kMostCharacters ? factor : 0;
}

/// `text` with its repetitions written out: first those of groups, then those
/// of single characters. Empty for one that is too long.
static std::string expanded(const std::string &text, bool groups) {
  std::string result;
  for (size_t at = 0; at < text.size() && result.size() < kMostCharacters;) {
    size_t close = groups && text[at] == '(' ? text.find(')', at) : text.npos;
    std::string part = close == text.npos ? text.substr(at, 1)
                                          : text.substr(at + 1, close - at - 1);
    size_t after = close == text.npos ? at + 1 : close + 1;
    // A group without a factor is a mistake, and a factor of 0.
    size_t factor = !groups              ? takeFactor(text, after, 1)
                    : close != text.npos ? takeFactor(text, after, 0)
                                         : 1;
    if (factor == 0 || part.size() * factor > kMostCharacters)
      return "";
    for (size_t i = 0; i < factor; ++i)
      result += part;
    at = after;
  }
  return result.size() < kMostCharacters ? result : "";
}

std::optional<std::vector<int64_t>> readLayout(const std::string &text,
                                               std::string &error) {
  std::string plain;
  for (char c : text)
    if (c != ',')
      plain += c;
  std::string layout = expanded(expanded(plain, true), false);
  bool isWhole =
      layout.size() >= 2 && layout.front() == 'E' && layout.back() == 'L';
  std::vector<int64_t> layers(1);
  for (size_t i = 1; isWhole && i + 1 < layout.size(); ++i)
    if (layout[i] == '|')
      layers.push_back(0);
    else if (layout[i] == 't')
      ++layers.back();
    else
      isWhole = false;
  for (size_t i = 1; isWhole && i + 1 < layers.size(); ++i)
    isWhole = layers[i] > 0;
  if (isWhole)
    return layers;
  error = "expected E, then layers t with | between chunks that have one at "
          "least, then L, got '" +
          text + "'";
  return std::nullopt;
}

} // namespace rota::engines::megatron
