// SPDX-License-Identifier: Apache-2.0
//
// A file of tokens (TokenFormat.h) and the mask beside it, if there is one:
// FILE.mask has a byte for each token of FILE; 0 says that the token does not
// count as a target.
#ifndef ROTA_RUNTIME_DATA_TOKENFILE_H
#define ROTA_RUNTIME_DATA_TOKENFILE_H

#include "runtime/data/TokenFormat.h"

#include <string>

namespace rota {

/// Upper bounds of tokens as inputs of the model and as its targets.
struct TokenBounds {
  int64_t vocabulary, classes;

  /// The bound that `token` violates, for messages: "the vocabulary of 256";
  /// empty when it violates none.
  std::string violation(int64_t token, bool isInput, bool isTarget) const;
};

/// A token is an input of the model or what it should predict.
enum class TokenRole { Input, Target };

/// The target of a position that does not count in the loss.
inline constexpr int32_t kNoTarget = -1;

/// The ending of a mask's file.
inline constexpr const char *kMaskEnding = ".mask";

/// Any thread may read it.
class TokenFile {
public:
  /// Opens the file and its mask. For `asked` and the errors see findTokens; a
  /// mask of another length is an InputError too. `keepOpen`: see DataFile.
  TokenFile(const std::string &path, std::optional<TokenType> asked,
            TokenBounds bounds, bool keepOpen);

  int64_t size() const { return layout.tokens; }
  int64_t bytes() const { return file.bytes(); }

  /// Tokens [begin, begin + count) to `out`, checked against the bound of the
  /// role; as targets kNoTarget where the mask says so. Throws InputError that
  /// names file, position, token and bound, and RunError as DataFile::read.
  void read(int64_t begin, int64_t count, TokenRole role, int32_t *out) const;

  /// Reads the whole file in both roles, for its errors.
  void check() const;

private:
  DataFile file;
  TokenLayout layout;
  TokenBounds bounds;
  std::optional<DataFile> mask;
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_TOKENFILE_H
