// SPDX-License-Identifier: Apache-2.0
//
// The step of a normalizer that replaces characters by a compiled table.
#ifndef ROTA_RUNTIME_TOKENIZER_CHARACTERMAP_H
#define ROTA_RUNTIME_TOKENIZER_CHARACTERMAP_H

#include "runtime/tokenizer/text/CharacterTable.h"
#include "runtime/tokenizer/text/JsonNode.h"

#include <memory>

namespace rota {

class CharacterMap {
public:
  /// Reads the table from base64. Throws InputError when it is cut off.
  explicit CharacterMap(const JsonNode &node);

  /// Replaces each cluster of characters of less than 6 bytes that the table
  /// has, and of others each character, as the tokenizers package does.
  void apply(std::string &text) const;

private:
  void applyTo(std::string_view cluster, std::string &out) const;

  std::shared_ptr<const CharacterTable> table;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_CHARACTERMAP_H
