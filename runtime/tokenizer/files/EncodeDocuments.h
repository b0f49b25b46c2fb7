// SPDX-License-Identifier: Apache-2.0
//
// Documents as tokens, with the tokens around them and what of them counts.
#ifndef ROTA_RUNTIME_TOKENIZER_ENCODEDOCUMENTS_H
#define ROTA_RUNTIME_TOKENIZER_ENCODEDOCUMENTS_H

#include "runtime/tokenizer/files/TextParts.h"

namespace rota {

/// Tokens before and after each document that no chat template has made.
struct DocumentFrame {
  std::vector<int32_t> before, after;
};

/// Encodes for one thread.
class DocumentEncoder {
public:
  DocumentEncoder(const Tokenizer &tokenizer, const DocumentFrame &frame)
      : encoder(tokenizer.makeEncoder()), frame(frame) {}

  /// Sets the tokens of the part, and its `counts`; drops its texts.
  void encode(TextPart &part);

private:
  void add(TextPart &part, DocumentPiece &piece);
  void addCounted(TextPart &part, const Document &document, TextPlace place);
  std::vector<size_t> tokensBefore(const std::string &text, TextPlace start,
                                   const std::vector<size_t> &places,
                                   const std::vector<int32_t> &whole);

  std::unique_ptr<Encoder> encoder;
  const DocumentFrame &frame;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_ENCODEDOCUMENTS_H
