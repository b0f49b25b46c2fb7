// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/Patterns.h"
#include "runtime/Error.h"

namespace rota {

Expression::Matcher readPattern(const JsonNode &node) {
  JsonNode pattern = node.at("pattern");
  if (auto text = pattern.find("String"))
    return Expression::Matcher(Expression::literal(text->text()));
  JsonNode text = pattern.at("Regex");
  try {
    return Expression::Matcher(Expression::regular(text.text()));
  } catch (const InputError &error) {
    text.refuse(error.what());
  }
}

std::string replaceRanges(std::string_view text,
                          const std::vector<Range> &ranges,
                          std::string_view content) {
  std::string replaced;
  size_t end = 0;
  for (const Range &range : ranges) {
    replaced += text.substr(end, range.begin - end);
    replaced += content;
    end = range.end;
  }
  replaced += text.substr(end);
  return replaced;
}

} // namespace rota
