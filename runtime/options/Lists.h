// SPDX-License-Identifier: Apache-2.0
//
// Lists in the text of a flag: elements between commas, where "\," is a comma
// of an element.
#ifndef ROTA_RUNTIME_OPTIONS_LISTS_H
#define ROTA_RUNTIME_OPTIONS_LISTS_H

#include <string>
#include <string_view>
#include <vector>

namespace rota {

inline std::vector<std::string> splitList(std::string_view text) {
  std::vector<std::string> elements(1);
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == ',')
      elements.emplace_back();
    else
      elements.back() +=
          text.substr(i).starts_with("\\,") ? text[++i] : text[i];
  return elements;
}

/// The text of which splitList makes `element` alone.
inline std::string listText(std::string_view element) {
  std::string text;
  for (char c : element)
    text += c == ',' ? "\\," : std::string(1, c);
  return text;
}

} // namespace rota

#endif // ROTA_RUNTIME_OPTIONS_LISTS_H
