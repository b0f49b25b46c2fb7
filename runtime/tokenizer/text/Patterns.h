// SPDX-License-Identifier: Apache-2.0
//
// Patterns as values of tokenizer.json.
#ifndef ROTA_RUNTIME_TOKENIZER_PATTERNS_H
#define ROTA_RUNTIME_TOKENIZER_PATTERNS_H

#include "runtime/tokenizer/text/Expression.h"
#include "runtime/tokenizer/text/JsonNode.h"

namespace rota {

/// The value of `pattern` in the node: {"Regex": TEXT} or {"String": TEXT}.
Expression::Matcher readPattern(const JsonNode &node);

/// The text with `content` in the place of each range; they are in order.
std::string replaceRanges(std::string_view text,
                          const std::vector<Range> &ranges,
                          std::string_view content);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_PATTERNS_H
