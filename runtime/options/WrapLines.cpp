// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/WrapLines.h"

#include <algorithm>

namespace rota {

/// The place of the space at which `line` is cut, after the first `indent`
/// characters; npos: there is none.
static size_t cutOf(std::string_view line, size_t width, size_t indent) {
  size_t cut = line.rfind(' ', width);
  bool isIndent = cut == line.npos || line.find_first_not_of(' ') > cut;
  return isIndent || cut <= indent ? line.find(' ', std::max(width, indent + 1))
                                   : cut;
}

std::string wrapLines(std::string_view text, size_t width, size_t column) {
  std::string wrapped;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line(text.substr(begin, end - begin));
    size_t indent = line.starts_with(' ') ? column : 0;
    while (width > 0 && line.size() > width) {
      size_t cut = cutOf(line, width, indent);
      if (cut == line.npos)
        break;
      wrapped += line.substr(0, cut) + "\n";
      line = std::string(indent, ' ') + line.substr(cut + 1);
    }
    wrapped += line + (end < text.size() ? "\n" : "");
    begin = end + 1;
  }
  return wrapped;
}

} // namespace rota
