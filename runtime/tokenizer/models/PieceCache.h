// SPDX-License-Identifier: Apache-2.0
//
// Tokens of pieces that came before: most pieces of a text come many times.
#ifndef ROTA_RUNTIME_TOKENIZER_PIECECACHE_H
#define ROTA_RUNTIME_TOKENIZER_PIECECACHE_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// Of one thread. It has a bound, after which it begins anew.
class PieceCache {
public:
  PieceCache();

  /// Appends the tokens of the piece; false: they are not there.
  bool find(std::string_view piece, std::vector<int32_t> &tokens);
  /// Keeps tokens for the piece that `find` was last asked for.
  void add(std::string_view piece, std::span<const int32_t> tokens);

private:
  struct Entry {
    uint32_t hash = 0;
    uint32_t bytes = 0;             // of the piece; 0: free
    uint32_t piece = 0, tokens = 0; // where they begin
    uint32_t count = 0;             // of tokens
  };
  void clear();

  std::vector<Entry> entries; // a power of two
  size_t used = 0;
  std::string pieces;
  std::vector<int32_t> tokens;
  uint64_t lastHash = 0;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_PIECECACHE_H
