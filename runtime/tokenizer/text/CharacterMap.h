// SPDX-License-Identifier: Apache-2.0
//
// The table of characters and their replacements that sentencepiece compiles
// (`precompiled_charsmap`): the size of a trie in bytes, the trie as a double
// array (darts), and the replacements, each with a zero after it.
// https://github.com/google/sentencepiece/blob/master/src/normalizer.cc
#ifndef ROTA_RUNTIME_TOKENIZER_CHARACTERMAP_H
#define ROTA_RUNTIME_TOKENIZER_CHARACTERMAP_H

#include "runtime/tokenizer/text/JsonNode.h"

#include <memory>
#include <string>
#include <vector>

namespace rota {

class CharacterMap {
public:
  /// Reads the table from base64. Throws InputError when it is cut off.
  explicit CharacterMap(const JsonNode &node);

  /// Replaces each cluster of characters of less than 6 bytes that the table
  /// has, and of others each character, as the tokenizers package does.
  void apply(std::string &text) const;

private:
  /// The replacement of the shortest beginning that the table has; nothing:
  /// none.
  const char *find(std::string_view chunk) const;
  void applyTo(std::string_view cluster, std::string &out) const;

  struct Table {
    std::vector<uint32_t> units;
    std::string texts; // ends with a zero
  };
  std::shared_ptr<const Table> table;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_CHARACTERMAP_H
