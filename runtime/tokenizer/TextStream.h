// SPDX-License-Identifier: Apache-2.0
//
// The text of tokens that come one after the other.
#ifndef ROTA_RUNTIME_TOKENIZER_TEXTSTREAM_H
#define ROTA_RUNTIME_TOKENIZER_TEXTSTREAM_H

#include "runtime/tokenizer/Tokenizer.h"

namespace rota {

/// All texts together are that of all tokens in one call: the tokens of the
/// last text are decoded again with the next ones, since a text may depend on
/// what is before it. Text that ends in the middle of a character waits.
class TextStream {
public:
  TextStream(const Tokenizer &tokenizer, bool skipSpecial)
      : tokenizer(tokenizer), skipSpecial(skipSpecial) {}

  /// The text that more tokens add.
  std::string add(std::span<const int32_t> tokens);
  /// The text that is left.
  std::string finish();

private:
  /// What the text of the first `count` tokens adds to the last text.
  std::string take(const std::string &text, size_t count);

  const Tokenizer &tokenizer;
  const bool skipSpecial;
  std::vector<int32_t> tokens; // of the last text, and those after it
  size_t told = 0;             // tokens of the last text
  std::string last;            // their text
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TEXTSTREAM_H
