// SPDX-License-Identifier: Apache-2.0
//
// The alphabet of byte-level BPE: a printable character for each byte.
// https://github.com/openai/gpt-2/blob/master/src/encoder.py
#ifndef ROTA_RUNTIME_TOKENIZER_BYTEALPHABET_H
#define ROTA_RUNTIME_TOKENIZER_BYTEALPHABET_H

#include <optional>
#include <string>
#include <string_view>

namespace rota {

/// The bytes as characters of the alphabet.
std::string toAlphabet(std::string_view bytes);

/// The bytes that a text of the alphabet stands for; nothing when another
/// character is in it.
std::optional<std::string> fromAlphabet(std::string_view text);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_BYTEALPHABET_H
