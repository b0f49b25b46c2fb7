// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/models/UnigramModel.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/text/Expression.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>

namespace rota {

static constexpr double kUnknownPenalty = 10.0;

/// The number that the tokenizers package reads. Its reader of JSON divides the
/// digits, as one number, by a power of ten, which may not be the nearest
/// number: it decides between cuts with equal sums. The digits in a file are
/// the fewest that name the number.
static double scoreOf(double nearest) {
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, std::abs(nearest),
                           std::chars_format::scientific)
                 .ptr;
  std::string_view number(text, static_cast<size_t>(end - text));
  size_t mark = number.find('e');
  if (mark == number.npos)
    return nearest; // not a finite number
  uint64_t digits = 0;
  int exponent = std::atoi(text + mark + 1);
  for (size_t n = 0; n < mark; ++n)
    if (number[n] != '.')
      digits = digits * 10 + static_cast<uint64_t>(number[n] - '0');
  exponent -= mark > 1 ? static_cast<int>(mark) - 2 : 0;
  if (std::abs(exponent) > 22) // whose power of ten is not exact
    return nearest;
  double power = 1;
  for (int n = 0; n < std::abs(exponent); ++n)
    power *= 10;
  double score = static_cast<double>(digits);
  score = exponent < 0 ? score / power : score * power;
  return nearest < 0 ? -score : score;
}

UnigramModel::UnigramModel(const JsonNode &node)
    : leastScore(std::numeric_limits<double>::infinity()) {
  node.at("vocab").forElements([&](const JsonNode &each) {
    if (!each.isArray() || each.size() != 2)
      each.fail("an array of a token and its score");
    const std::string &text = each.element(0).text();
    double score = scoreOf(each.element(1).number());
    int32_t token = static_cast<int32_t>(scores.size());
    vocabulary.add(text, token);
    if (!text.empty())
      trie.add(text, token);
    scores.push_back(score);
    leastScore = std::min(leastScore, score);
  });
  if (auto token = node.find("unk_id"))
    unknown = static_cast<int32_t>(
        token->integer(0, static_cast<int64_t>(scores.size()) - 1));
  hasByteTokens = node.boolean("byte_fallback", false);
}

int32_t UnigramModel::requireUnknown(std::string_view text) const {
  if (!unknown)
    throw InputError(fmt::format("no token for '{}': the tokenizer's model has "
                                 "no 'unk_id'",
                                 repairUtf8(text.substr(0, 40))));
  return *unknown;
}

std::vector<UnigramModel::Best>
UnigramModel::findBest(std::string_view piece) const {
  std::vector<Best> best(piece.size() + 1);
  for (size_t at = 0; at < piece.size();) {
    size_t bytes = static_cast<size_t>(charBytes(piece[at]));
    double before = best[at].score;
    bool hasCharacter = false;
    auto offer = [&](size_t end, int32_t token, double score) {
      Best &now = best[end];
      if (now.begin < 0 || before + score > now.score)
        now = {token, static_cast<int64_t>(at), before + score};
    };
    int32_t node = 0;
    for (size_t end = at; end < piece.size();) {
      node = trie.next(node, piece[end++]);
      if (node == ByteTrie::kNone)
        break;
      int32_t token = trie.value(node);
      if (token == ByteTrie::kNone)
        continue;
      offer(end, token, scores[static_cast<size_t>(token)]);
      hasCharacter |= end - at == bytes;
    }
    if (!hasCharacter)
      offer(at + bytes, requireUnknown(piece.substr(at, bytes)),
            leastScore - kUnknownPenalty);
    at += bytes;
  }
  return best;
}

void UnigramModel::addPart(std::string_view text,
                           std::vector<int32_t> &tokens) const {
  if (std::optional<int32_t> token = vocabulary.find(text))
    return tokens.push_back(*token);
  size_t begin = tokens.size();
  for (size_t n = 0; hasByteTokens && n < text.size(); ++n) {
    std::optional<int32_t> token = vocabulary.find(byteToken(text[n]));
    if (!token) {
      tokens.resize(begin);
      break;
    }
    tokens.push_back(*token);
  }
  if (tokens.size() == begin)
    tokens.push_back(requireUnknown(text));
}

void UnigramModel::encode(std::string_view piece,
                          std::vector<int32_t> &tokens) const {
  std::vector<Best> best = findBest(piece);
  std::vector<Range> parts; // from right to left
  bool wasUnknown = false;
  for (size_t end = piece.size(); end > 0;) {
    size_t begin = static_cast<size_t>(best[end].begin);
    bool isUnknown = unknown && best[end].token == *unknown;
    // Unknown characters side by side are one token.
    if (isUnknown && wasUnknown)
      parts.back().begin = begin;
    else
      parts.push_back({begin, end});
    wasUnknown = isUnknown;
    end = begin;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    addPart(piece.substr(part->begin, part->end - part->begin), tokens);
}

} // namespace rota
