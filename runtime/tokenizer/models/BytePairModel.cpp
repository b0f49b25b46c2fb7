// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/models/BytePairModel.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>
#include <bit>
#include <fmt/format.h>

namespace rota {

Merges::Merges(size_t count)
    : entries(std::bit_ceil(std::max<size_t>(4, count * 2))) {}

size_t Merges::slotOf(int32_t left, int32_t right) const {
  uint64_t key =
      static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  key = (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
  return (key >> 32) & (entries.size() - 1);
}

void Merges::add(int32_t left, int32_t right, Merge merge) {
  size_t at = slotOf(left, right);
  while (entries[at].left >= 0 &&
         (entries[at].left != left || entries[at].right != right))
    at = (at + 1) & (entries.size() - 1);
  entries[at] = {left, right, merge};
}

const Merges::Merge *Merges::find(int32_t left, int32_t right) const {
  for (size_t at = slotOf(left, right);; at = (at + 1) & (entries.size() - 1)) {
    const Entry &entry = entries[at];
    if (entry.left == left && entry.right == right)
      return &entry.merge;
    if (entry.left < 0)
      return nullptr;
  }
}

BytePairModel::BytePairModel(const JsonNode &node) {
  vocabulary.read(node.at("vocab"));
  if (auto dropout = node.find("dropout"); dropout && dropout->number() != 0)
    dropout->refuse("dropout of merges is not supported");
  prefix = node.text("continuing_subword_prefix", "");
  suffix = node.text("end_of_word_suffix", "");
  fusesUnknown = node.boolean("fuse_unk", false);
  hasByteTokens = node.boolean("byte_fallback", false);
  ignoresMerges = node.boolean("ignore_merges", false);
  if (auto text = node.find("unk_token"); text && !text->text().empty()) {
    unknown = vocabulary.find(text->text());
    if (!unknown)
      text->fail("a token of the vocabulary");
  }
  readMerges(node.at("merges"));
  findBoundary();
}

/// A merge: "LEFT RIGHT", or [LEFT, RIGHT].
static std::pair<std::string_view, std::string_view>
readPair(const JsonNode &node) {
  if (node.isArray() && node.size() == 2)
    return {node.element(0).text(), node.element(1).text()};
  std::string_view text = node.isArray() ? std::string_view() : node.text();
  size_t space = text.find(' ');
  if (space == text.npos || text.find(' ', space + 1) != text.npos)
    node.fail("two tokens with a space between them, or an array of two");
  return {text.substr(0, space), text.substr(space + 1)};
}

void BytePairModel::readMerges(const JsonNode &node) {
  if (!node.isArray())
    node.fail("an array");
  merges = Merges(node.size());
  int32_t rank = 0;
  for (size_t n = 0; n < node.size(); ++n) {
    const JsonNode each = node.element(n);
    if (each.isString() && each.text().starts_with("#version"))
      continue;
    auto [left, right] = readPair(each);
    auto tokenOf = [&](std::string_view text) {
      std::optional<int32_t> token = vocabulary.find(text);
      if (!token)
        each.refuse(
            fmt::format("expected tokens of the vocabulary, got '{}'", text));
      return *token;
    };
    int32_t leftToken = tokenOf(left), rightToken = tokenOf(right);
    if (right.size() < prefix.size())
      each.refuse(
          fmt::format("expected a token that begins with '{}'", prefix));
    std::string joined(left);
    joined += right.substr(prefix.size());
    merges.add(leftToken, rightToken, {rank++, tokenOf(joined)});
  }
}

void BytePairModel::findBoundary() {
  constexpr std::string_view kMark = "\xE2\x96\x81"; // sentencepiece's space
  if (ignoresMerges || !prefix.empty() || !suffix.empty() ||
      !vocabulary.find(kMark))
    return;
  bool isInside = false;
  vocabulary.forAll([&](std::string_view text, int32_t) {
    for (size_t at = text.find(kMark); at != text.npos && !isInside;
         at = text.find(kMark, at + 1))
      isInside = at > 0 && !text.substr(0, at).ends_with(kMark);
  });
  if (!isInside)
    mark = kMark;
}

bool BytePairModel::addBytes(std::string_view text, Symbols &symbols) const {
  size_t begin = symbols.size();
  for (char byte : text) {
    std::optional<int32_t> token = vocabulary.find(byteToken(byte));
    if (!token) {
      symbols.resize(begin);
      return false;
    }
    symbols.push_back({*token, 0, 0, false});
  }
  return true;
}

void BytePairModel::addCharacters(std::string_view piece,
                                  Symbols &symbols) const {
  int64_t pending = 0; // unknown tokens that come before the next known one
  auto flush = [&] {
    for (; pending > 0; --pending)
      symbols.push_back({*unknown, 0, 0, false});
  };
  std::string changed;
  for (size_t at = 0; at < piece.size();) {
    size_t begin = at;
    at += static_cast<size_t>(charBytes(piece[at]));
    std::string_view text = piece.substr(begin, at - begin);
    bool isLast = at == piece.size();
    if ((begin > 0 && !prefix.empty()) || (isLast && !suffix.empty())) {
      changed = (begin > 0 ? prefix : "") + std::string(text) +
                (isLast ? suffix : "");
      text = changed;
    }
    if (std::optional<int32_t> token = vocabulary.find(text)) {
      flush();
      symbols.push_back({*token, 0, 0, false});
    } else if (!(hasByteTokens && addBytes(text, symbols)) && unknown) {
      if (!fusesUnknown)
        flush();
      pending = 1;
    }
  }
  flush();
}

namespace {

struct RankedPair {
  Merges::Merge merge;
  int32_t place;

  /// For a heap with the lowest rank on top, among equals the first place.
  bool operator<(const RankedPair &other) const {
    return merge.rank != other.merge.rank ? merge.rank > other.merge.rank
                                          : place > other.place;
  }
};

} // namespace

void BytePairModel::merge(Symbols &symbols) const {
  std::vector<RankedPair> queue;
  auto push = [&](int32_t left, bool isHeap) {
    int32_t right = left < 0 ? -1 : symbols[size_t(left)].next;
    if (right < 0)
      return;
    const Merges::Merge *merge =
        merges.find(symbols[size_t(left)].token, symbols[size_t(right)].token);
    if (!merge)
      return;
    queue.push_back({*merge, left});
    if (isHeap)
      std::push_heap(queue.begin(), queue.end());
  };
  for (size_t n = 0; n < symbols.size(); ++n) {
    symbols[n].previous = static_cast<int32_t>(n) - 1;
    symbols[n].next = n + 1 < symbols.size() ? static_cast<int32_t>(n) + 1 : -1;
  }
  for (size_t n = 0; n < symbols.size(); ++n)
    push(static_cast<int32_t>(n), /*isHeap=*/false);
  std::make_heap(queue.begin(), queue.end());
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end());
    RankedPair top = queue.back();
    queue.pop_back();
    Symbol &left = symbols[size_t(top.place)];
    if (left.isGone || left.next < 0)
      continue;
    // A neighbour may have changed since.
    Symbol &right = symbols[size_t(left.next)];
    const Merges::Merge *now = merges.find(left.token, right.token);
    if (!now || now->token != top.merge.token)
      continue;
    left.token = top.merge.token;
    left.next = right.next;
    right.isGone = true;
    if (left.next >= 0)
      symbols[size_t(left.next)].previous = top.place;
    push(left.previous, /*isHeap=*/true);
    push(top.place, /*isHeap=*/true);
  }
}

void BytePairModel::encode(std::string_view piece,
                           std::vector<int32_t> &tokens) const {
  if (ignoresMerges)
    if (std::optional<int32_t> token = vocabulary.find(piece))
      return tokens.push_back(*token);
  Symbols symbols;
  symbols.reserve(piece.size());
  addCharacters(piece, symbols);
  merge(symbols);
  for (const Symbol &symbol : symbols)
    if (!symbol.isGone)
      tokens.push_back(symbol.token);
}

} // namespace rota
