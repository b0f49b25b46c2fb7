// SPDX-License-Identifier: Apache-2.0
//
// Places where a long text may be cut without a change of its tokens.
#ifndef ROTA_RUNTIME_TOKENIZER_CUTTEXT_H
#define ROTA_RUNTIME_TOKENIZER_CUTTEXT_H

#include "runtime/tokenizer/Tokenizer.h"

namespace rota {

/// Finds a place by trying: the tokens of some kilobytes around it are the same
/// for the whole and for its two halves. Tried are line breaks before a letter,
/// then spaces between words, then ends of punctuation: never the middle of a
/// run or of a word, whose tokens may depend on its beginning, however far.
/// The result depends on the text and on the tokenizer alone.
class TextCutter {
public:
  explicit TextCutter(const Tokenizer &tokenizer)
      : encoder(tokenizer.makeEncoder()) {}

  /// Bytes before and after a place that are looked at.
  static constexpr size_t kWindow = 2048;

  /// The first place at or after `least` that is found, with kWindow bytes
  /// after it; 0: there is none. The bytes need not be valid UTF-8.
  size_t find(std::string_view bytes, size_t least);

private:
  bool isHarmless(std::string_view bytes, size_t place);

  std::unique_ptr<Encoder> encoder;
  std::vector<int32_t> whole, parts;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_CUTTEXT_H
