// SPDX-License-Identifier: Apache-2.0
//
// What libsentencepiece does not check of a tokenizer.model.
#ifndef ROTA_RUNTIME_TOKENIZER_SENTENCEPIECEFILE_H
#define ROTA_RUNTIME_TOKENIZER_SENTENCEPIECEFILE_H

#include <string>
#include <string_view>

namespace rota {

/// Throws InputError, which begins with `place`, when a table of characters in
/// the file would be read beyond its end, or the file is no protobuf.
void checkCharacterTables(std::string_view file, const std::string &place);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_SENTENCEPIECEFILE_H
