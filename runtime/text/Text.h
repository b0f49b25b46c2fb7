// SPDX-License-Identifier: Apache-2.0
//
// Numbers in the output of the compiler and the trainers, for people to read.
#ifndef ROTA_RUNTIME_TEXT_TEXT_H
#define ROTA_RUNTIME_TEXT_TEXT_H

#include <charconv>
#include <cstdint>
#include <string>

namespace rota {

/// "1,234,567".
inline std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3;
       at > (value < 0 ? 1 : 0); at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

/// The shortest text that reads back to the same number: "1.5", "1e-08".
inline std::string numberText(double value) {
  char text[64];
  return std::string(text, std::to_chars(text, text + sizeof(text), value).ptr);
}

/// A number with its noun: "1 rank", "2 ranks".
inline std::string counted(int64_t count, const std::string &noun,
                           const std::string &plural = "s") {
  return grouped(count) + " " + noun + (count == 1 ? "" : plural);
}

} // namespace rota

#endif // ROTA_RUNTIME_TEXT_TEXT_H
