// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer that made a file of tokens: the header of the .npy files of
// `rota tokenize` names it in a comment, which numpy skips:
//     {'descr': '<u2', 'fortran_order': False, 'shape': (12,), }
//     # tokenizer 0123456789abcdef, vocabulary 50257
#ifndef ROTA_RUNTIME_DATA_TOKENORIGIN_H
#define ROTA_RUNTIME_DATA_TOKENORIGIN_H

#include <cstdint>
#include <optional>
#include <string>

namespace rota {

struct TokenOrigin {
  uint64_t hash; // of the tokenizer's file
  int64_t vocabulary;

  bool operator==(const TokenOrigin &) const = default;
};

/// Bytes of the header of a file that has the comment.
inline constexpr int64_t kOriginHeaderBytes = 256;

/// "# tokenizer 0123456789abcdef, vocabulary 50257".
std::string originComment(const TokenOrigin &origin);

/// The comment of a file; nothing where there is none. Throws InputError when
/// the file cannot be read.
std::optional<TokenOrigin> readTokenOrigin(const std::string &path);

} // namespace rota

#endif // ROTA_RUNTIME_DATA_TOKENORIGIN_H
