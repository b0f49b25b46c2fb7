// SPDX-License-Identifier: Apache-2.0
//
// Characters that Unicode 15 and 16 added. PCRE2 of Debian 12 knows Unicode 14,
// the expressions of the tokenizers package (Oniguruma) know 16.
#ifndef ROTA_RUNTIME_TOKENIZER_NEWCHARACTERS_H
#define ROTA_RUNTIME_TOKENIZER_NEWCHARACTERS_H

#include <string_view>
#include <vector>

namespace rota {

/// Characters of a general category, or of a script.
struct NewCharacters {
  char32_t first, last;
  std::string_view property; // "Lu", "Han"
};

/// By general category.
const std::vector<NewCharacters> &newCharacters();
/// By script.
const std::vector<NewCharacters> &newScriptCharacters();

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_NEWCHARACTERS_H
