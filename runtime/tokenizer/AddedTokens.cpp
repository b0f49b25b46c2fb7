// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/AddedTokens.h"
#include "runtime/tokenizer/text/Characters.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>

namespace rota {

static AddedToken readToken(const JsonNode &node) {
  AddedToken token;
  token.content = token.normal = node.at("content").text();
  token.singleWord = node.at("single_word").boolean();
  token.stripsLeft = node.at("lstrip").boolean();
  token.stripsRight = node.at("rstrip").boolean();
  token.isNormalized = node.at("normalized").boolean();
  token.isSpecial = node.at("special").boolean();
  return token;
}

void AddedTokens::read(
    const JsonNode &node, const TokenModel &model,
    const std::function<std::string(std::string)> &normalize) {
  int32_t next = static_cast<int32_t>(model.size());
  node.forElements([&](const JsonNode &each) {
    AddedToken token = readToken(each);
    each.at("id").integer(0, kMostTokens - 1);
    if (token.content.empty())
      return;
    std::optional<int32_t> known = find(token.content);
    if (!known)
      known = model.find(token.content);
    int32_t number = known ? *known : next++;
    if (token.isNormalized)
      token.normal = normalize(token.content);
    byContent[token.content] = number;
    byToken[number] = std::move(token);
  });
  for (const auto &[number, token] : byToken)
    if (!token.normal.empty())
      add(sets[token.isNormalized], token.normal, number);
}

void AddedTokens::add(Set &set, const std::string &pattern, int32_t token) {
  set.trie.add(pattern, token);
  set.begins[static_cast<uint8_t>(pattern[0])] = true;
  set.isEmpty = false;
}

const AddedToken *AddedTokens::find(int32_t token) const {
  auto found = byToken.find(token);
  return found == byToken.end() ? nullptr : &found->second;
}

std::optional<int32_t> AddedTokens::find(std::string_view content) const {
  auto found = byContent.find(content);
  return found == byContent.end() ? std::nullopt : std::optional(found->second);
}

/// The beginning of the last character before `end`, which is not 0.
static size_t lastChar(std::string_view text, size_t end) {
  do
    --end;
  while (!beginsChar(text[end]));
  return end;
}

static bool endsWithWord(std::string_view text, size_t end) {
  if (end == 0)
    return false;
  size_t at = lastChar(text, end);
  return isWord(nextChar(text, at));
}

static size_t spacesBefore(std::string_view text, size_t end) {
  while (end > 0) {
    size_t begin = lastChar(text, end), at = begin;
    if (!isSpace(nextChar(text, at)))
      break;
    end = begin;
  }
  return end;
}

static size_t spacesAfter(std::string_view text, size_t begin) {
  for (size_t at = begin; at < text.size(); begin = at)
    if (!isSpace(nextChar(text, at)))
      break;
  return begin;
}

std::vector<AddedTokens::Found> AddedTokens::find(std::string_view text,
                                                  bool normalized) const {
  std::vector<Found> all;
  const Set &set = sets[normalized];
  size_t taken = 0; // end of the last part
  for (size_t at = 0; !set.isEmpty && at < text.size();) {
    Found found{at, at, kNoToken};
    int32_t node = set.begins[static_cast<uint8_t>(text[at])] ? 0 : kNoToken;
    for (size_t end = at; node != ByteTrie::kNone && end < text.size();) {
      node = set.trie.next(node, text[end++]);
      if (node != ByteTrie::kNone && set.trie.value(node) != ByteTrie::kNone)
        found = {at, end, set.trie.value(node)};
    }
    if (found.token == kNoToken) {
      ++at;
      continue;
    }
    at = found.end;
    const AddedToken &token = byToken.at(found.token);
    size_t next = found.end;
    if (token.singleWord &&
        (endsWithWord(text, found.begin) ||
         (next < text.size() && isWord(nextChar(text, next)))))
      continue;
    if (token.stripsLeft)
      found.begin = std::max(spacesBefore(text, found.begin), taken);
    if (token.stripsRight)
      found.end = spacesAfter(text, found.end);
    found.begin = std::max(found.begin, taken);
    all.push_back(found);
    taken = std::max(found.begin, found.end);
  }
  for (Found &found : all)
    found.end = std::max(found.begin, found.end);
  return all;
}

} // namespace rota
