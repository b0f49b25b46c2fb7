// SPDX-License-Identifier: Apache-2.0
//
// The bytes that sentencepiece compiles of characters and their replacements
// (`precompiled_charsmap`): the size of a trie in bytes, the trie as a double
// array (darts), and the replacements, each with a zero after it.
// https://github.com/google/sentencepiece/blob/master/src/normalizer.cc
#ifndef ROTA_RUNTIME_TOKENIZER_CHARACTERTABLE_H
#define ROTA_RUNTIME_TOKENIZER_CHARACTERTABLE_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

class CharacterTable {
public:
  /// Reads the parts. Throws InputError, which begins with `place`, when they
  /// are cut off or the replacements are no UTF-8.
  CharacterTable(std::string_view bytes, const std::string &place);

  /// The replacement of the shortest beginning of `chunk` that the table has;
  /// nothing: none. A broken trie has fewer, and nothing outside of it is read.
  const char *find(std::string_view chunk) const;

  /// Whether each search stays inside of the trie and of the replacements
  /// without being checked, as libsentencepiece searches.
  bool isClosed() const;

private:
  /// The replacement that begins there; nothing where no character begins.
  const char *textAt(uint32_t place) const;

  std::vector<uint32_t> units;
  std::string texts; // ends with a zero
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_CHARACTERTABLE_H
