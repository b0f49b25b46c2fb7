// SPDX-License-Identifier: Apache-2.0
//
// Several token files as one sequence of tokens.
#ifndef ROTA_RUNTIME_DATA_TOKENS_H
#define ROTA_RUNTIME_DATA_TOKENS_H

#include "runtime/data/TokenFile.h"

#include <vector>

namespace rota {

/// Files that stay open. A process may have 1024 open files by default; each of
/// these has up to two.
inline constexpr size_t kKeptOpen = 128;

/// Any thread may read it.
class Tokens {
public:
  /// Opens the files. Tokens are checked against the bounds when they are read;
  /// those of files with at most 64 MiB together are checked here too, so that
  /// a wrong vocabulary is found before the first step. The first `keptOpen`
  /// files and their masks stay open: see DataFile. For `type` and the errors
  /// see TokenFile.
  Tokens(const std::vector<std::string> &paths, std::optional<TokenType> type,
         TokenBounds bounds, size_t keptOpen = kKeptOpen);

  int64_t size() const { return firsts.back(); }
  /// File i has the tokens [boundaries()[i], boundaries()[i + 1]).
  const std::vector<int64_t> &boundaries() const { return firsts; }

  /// Tokens [position, position + count) to `out`: see TokenFile::read.
  void read(int64_t position, int64_t count, TokenRole role,
            int32_t *out) const;

private:
  std::vector<TokenFile> files;
  std::vector<int64_t> firsts = {0}; // first token of each file, and the end
};

} // namespace rota

#endif // ROTA_RUNTIME_DATA_TOKENS_H
