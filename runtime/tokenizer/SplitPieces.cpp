// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/SplitPieces.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <algorithm>

namespace rota {

namespace {

struct Span {
  size_t begin, end;
  bool isMatch;
};

/// Matches and what is between them, over the whole text.
void findSpans(std::string_view text, const std::vector<Range> &matches,
               bool invert, std::vector<Span> &spans) {
  size_t end = 0;
  for (const Range &match : matches) {
    if (end != match.begin)
      spans.push_back({end, match.begin, invert});
    spans.push_back({match.begin, match.end, !invert});
    end = match.end;
  }
  if (end != text.size())
    spans.push_back({end, text.size(), invert});
}

/// Joins neighbours for which `joins(span is a match, previous is a match)`.
/// With `backwards` from the last to the first.
template <typename Joins>
std::vector<Span> join(std::vector<Span> spans, bool backwards, Joins joins) {
  if (backwards)
    std::ranges::reverse(spans);
  std::vector<Span> joined;
  bool wasMatch = false;
  for (const Span &span : spans) {
    if (joins(span.isMatch, wasMatch) && !joined.empty()) {
      joined.back().begin = std::min(joined.back().begin, span.begin);
      joined.back().end = std::max(joined.back().end, span.end);
    } else {
      joined.push_back(span);
    }
    wasMatch = span.isMatch;
  }
  if (backwards)
    std::ranges::reverse(joined);
  return joined;
}

std::vector<Span> applyBehavior(SplitBehavior behavior,
                                std::vector<Span> spans) {
  auto isNewMatch = [](bool isMatch, bool wasMatch) {
    return isMatch && !wasMatch;
  };
  switch (behavior) {
  case SplitBehavior::Isolated:
    break;
  case SplitBehavior::Removed:
    std::erase_if(spans, [](const Span &span) { return span.isMatch; });
    break;
  case SplitBehavior::Contiguous:
    return join(std::move(spans), false, std::equal_to<bool>());
  case SplitBehavior::MergedWithPrevious:
    return join(std::move(spans), false, isNewMatch);
  case SplitBehavior::MergedWithNext:
    return join(std::move(spans), true, isNewMatch);
  }
  return spans;
}

} // namespace

std::optional<SplitBehavior> behaviorOf(std::string_view name) {
  constexpr std::string_view names[] = {"Removed", "Isolated",
                                        "MergedWithPrevious", "MergedWithNext",
                                        "Contiguous"};
  for (size_t n = 0; n < std::size(names); ++n)
    if (name == names[n])
      return static_cast<SplitBehavior>(n);
  return std::nullopt;
}

void splitPieces(Pieces &pieces, const FindMatches &find, SplitRule rule) {
  pieces.next.clear();
  std::vector<Range> matches;
  std::vector<Span> spans;
  for (const TextPiece &piece : pieces.list) {
    matches.clear();
    find(piece.text, matches);
    spans.clear();
    findSpans(piece.text, matches, rule.invert, spans);
    if (rule.behavior != SplitBehavior::Isolated)
      spans = applyBehavior(rule.behavior, std::move(spans));
    for (const Span &span : spans)
      if (span.begin != span.end)
        pieces.next.push_back(
            {piece.text.substr(span.begin, span.end - span.begin),
             piece.isFirst && span.begin == 0,
             piece.continues && span.begin == 0});
  }
  pieces.list.swap(pieces.next);
}

FindMatches matchCharacters(std::function<bool(char32_t)> isMatch) {
  return [isMatch = std::move(isMatch)](std::string_view text,
                                        std::vector<Range> &matches) {
    for (size_t at = 0; at < text.size();) {
      size_t begin = at;
      if (isMatch(nextChar(text, at)))
        matches.push_back({begin, at});
    }
  };
}

} // namespace rota
