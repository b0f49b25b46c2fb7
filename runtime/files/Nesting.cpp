// SPDX-License-Identifier: Apache-2.0
#include "runtime/files/Nesting.h"

#include <algorithm>
#include <fmt/format.h>

namespace rota {

size_t findTooDeep(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '"': // a string, which may be open at the end
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        i += text[i] == '\\';
      break;
    case '/': // a comment of MLIR
      if (text.substr(i).starts_with("//"))
        i = std::min(text.find('\n', i), text.size());
      break;
    case '<': // "<=" of an integer set is no bracket
      if (text.substr(i).starts_with("<="))
        break;
      [[fallthrough]];
    case '[':
    case '{':
    case '(':
      if (++depth > kMostNesting)
        return i;
      break;
    case '>': // nor are "->" and ">="
      if ((i > 0 && text[i - 1] == '-') || text.substr(i).starts_with(">="))
        break;
      [[fallthrough]];
    case ']':
    case '}':
    case ')':
      depth -= depth > 0;
      break;
    }
  }
  return std::string_view::npos;
}

std::string nestingMistake(std::string_view text) {
  size_t place = findTooDeep(text);
  if (place == std::string_view::npos)
    return "";
  return fmt::format("expected at most {} levels of brackets, got more at byte "
                     "{}",
                     kMostNesting, place);
}

} // namespace rota
