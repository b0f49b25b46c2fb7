// SPDX-License-Identifier: Apache-2.0
//
// What becomes of the matches of a pattern in a piece.
#ifndef ROTA_RUNTIME_TOKENIZER_SPLITPIECES_H
#define ROTA_RUNTIME_TOKENIZER_SPLITPIECES_H

#include "runtime/tokenizer/PreTokenizer.h"
#include "runtime/tokenizer/text/Expression.h"

#include <optional>

namespace rota {

/// Removed: matches go. Isolated: each match is a piece. MergedWithPrevious,
/// MergedWithNext: a match belongs to the text before or after it. Contiguous:
/// matches side by side are one piece.
enum class SplitBehavior {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous
};

/// "Removed" or "removed"; nothing for another name.
std::optional<SplitBehavior> behaviorOf(std::string_view name);

struct SplitRule {
  SplitBehavior behavior;
  bool invert = false; // what is between matches counts as a match
};

/// Appends the matches in a text from left to right.
using FindMatches =
    std::function<void(std::string_view text, std::vector<Range> &matches)>;

void splitPieces(Pieces &pieces, const FindMatches &find, SplitRule rule);

/// A match for each character of which `isMatch` holds.
FindMatches matchCharacters(std::function<bool(char32_t)> isMatch);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_SPLITPIECES_H
