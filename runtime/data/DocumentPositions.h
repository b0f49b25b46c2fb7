// SPDX-License-Identifier: Apache-2.0
//
// Positions of tokens in their documents.
#ifndef ROTA_RUNTIME_DATA_DOCUMENTPOSITIONS_H
#define ROTA_RUNTIME_DATA_DOCUMENTPOSITIONS_H

#include <cstdint>
#include <span>

namespace rota {

/// Replaces the tokens of a sequence by their positions in documents: 0 for the
/// first token and after each token `end`, else one more than the token's
/// before.
///
///     tokens, end 2:  5 7 2 9 2 2 4
///     positions:      0 1 2 0 1 0 0
inline void findDocumentPositions(std::span<int32_t> sequence, int64_t end) {
  int32_t position = 0;
  for (int32_t &token : sequence) {
    bool isLast = token == end;
    token = position;
    position = isLast ? 0 : position + 1;
  }
}

} // namespace rota

#endif // ROTA_RUNTIME_DATA_DOCUMENTPOSITIONS_H
