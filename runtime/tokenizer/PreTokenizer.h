// SPDX-License-Identifier: Apache-2.0
//
// Pre-tokenizers of tokenizer.json: steps that cut a text into pieces, each of
// which the model turns into tokens on its own.
#ifndef ROTA_RUNTIME_TOKENIZER_PRETOKENIZER_H
#define ROTA_RUNTIME_TOKENIZER_PRETOKENIZER_H

#include "runtime/tokenizer/text/JsonNode.h"

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// A piece of a text; for the flags see NormalizedText.
struct TextPiece {
  std::string_view text;
  bool isFirst = false, continues = false;
};

struct Pieces {
  std::vector<TextPiece> list;
  std::deque<std::string> owned; // texts of pieces that a step has changed
  std::vector<TextPiece> next;   // of a step at work

  /// Keeps a text for a piece.
  std::string_view keep(std::string text) {
    return owned.emplace_back(std::move(text));
  }
};

/// Steps have the state of one thread: a copy is for another.
using PreTokenizerStep = std::function<void(Pieces &)>;

struct PreTokenizer {
  std::vector<PreTokenizerStep> steps;
  /// After the last step the bytes of pieces are written in the alphabet of
  /// byte-level BPE (ByteAlphabet.h).
  bool endsWithBytes = false;
};

/// The steps of the value of `pre_tokenizer`. Throws InputError that names what
/// is wrong or unknown.
PreTokenizer readPreTokenizer(const JsonNode &node);

/// The step that writes bytes in the alphabet.
void writeInAlphabet(Pieces &pieces);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_PRETOKENIZER_H
