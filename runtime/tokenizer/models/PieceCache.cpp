// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/models/PieceCache.h"
#include "runtime/checkpoint/Hash.h"

#include <cstring>

namespace rota {

static constexpr size_t kEntries = 1 << 19;   // 10 MiB
static constexpr size_t kBytes = 16 << 20;    // of pieces
static constexpr size_t kMostPiece = 1 << 10; // longer ones seldom come twice

PieceCache::PieceCache() : entries(kEntries) {}

void PieceCache::clear() {
  entries.assign(kEntries, {});
  used = 0;
  pieces.clear();
  tokens.clear();
}

bool PieceCache::find(std::string_view piece, std::vector<int32_t> &out) {
  if (piece.size() > kMostPiece)
    return false;
  lastHash = hashOf(piece);
  for (size_t at = lastHash & (kEntries - 1); entries[at].bytes > 0;
       at = (at + 1) & (kEntries - 1)) {
    const Entry &entry = entries[at];
    if (entry.hash != static_cast<uint32_t>(lastHash >> 32) ||
        entry.bytes != piece.size() ||
        std::memcmp(pieces.data() + entry.piece, piece.data(), piece.size()))
      continue;
    auto begin = tokens.begin() + entry.tokens;
    out.insert(out.end(), begin, begin + entry.count);
    return true;
  }
  return false;
}

void PieceCache::add(std::string_view piece, std::span<const int32_t> added) {
  if (piece.size() > kMostPiece || piece.empty())
    return;
  if (used > kEntries / 2 || pieces.size() > kBytes)
    clear();
  size_t at = lastHash & (kEntries - 1);
  while (entries[at].bytes > 0)
    at = (at + 1) & (kEntries - 1);
  entries[at] = {static_cast<uint32_t>(lastHash >> 32),
                 static_cast<uint32_t>(piece.size()),
                 static_cast<uint32_t>(pieces.size()),
                 static_cast<uint32_t>(tokens.size()),
                 static_cast<uint32_t>(added.size())};
  ++used;
  pieces += piece;
  tokens.insert(tokens.end(), added.begin(), added.end());
}

} // namespace rota
