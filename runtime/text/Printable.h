// SPDX-License-Identifier: Apache-2.0
#ifndef ROTA_RUNTIME_TEXT_PRINTABLE_H
#define ROTA_RUNTIME_TEXT_PRINTABLE_H

#include <string>

namespace rota {

/// The text without control characters but ends of lines and tabs: what a
/// terminal does not take as a command.
inline std::string printable(std::string text) {
  for (char &c : text)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') ||
        c == 0x7F)
      c = '?';
  return text;
}

} // namespace rota

#endif // ROTA_RUNTIME_TEXT_PRINTABLE_H
