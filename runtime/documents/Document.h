// SPDX-License-Identifier: Apache-2.0
//
// A text of its own, with what of it is learned.
#ifndef ROTA_RUNTIME_DOCUMENTS_DOCUMENT_H
#define ROTA_RUNTIME_DOCUMENTS_DOCUMENT_H

#include <optional>
#include <string>
#include <vector>

namespace rota {

/// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin, end;

  bool operator==(const ByteRange &) const = default;
};

struct Document {
  std::string text;
  /// Ranges whose tokens count as targets, in order; nothing: all tokens do.
  std::optional<std::vector<ByteRange>> counted = {};
  /// Made by a chat template: no token has to stand around it.
  bool isRendered = false;
};

} // namespace rota

#endif // ROTA_RUNTIME_DOCUMENTS_DOCUMENT_H
