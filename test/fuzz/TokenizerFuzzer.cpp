// SPDX-License-Identifier: Apache-2.0
//
// Random tokenizers. A byte says the kind of file; then follow the tokenizer
// and a text. Either the tokenizer is refused by an InputError, or the text's
// tokens are in its vocabulary and have a text in UTF-8.
#include "runtime/Error.h"
#include "runtime/tokenizer/Tokenizer.h"
#include "runtime/tokenizer/text/Utf8.h"
#include "test/fuzz/FuzzFiles.h"

#include <cstdlib>

using namespace rota;
using namespace rota::test;

static void require(bool holds) {
  if (!holds)
    std::abort();
}

static void use(const Tokenizer &tokenizer, std::string_view text) {
  std::vector<int32_t> tokens = tokenizer.before;
  std::unique_ptr<Encoder> encoder = tokenizer.makeEncoder();
  encoder->encode(text, TextPlace::Start, tokens);
  encoder->encode(text, TextPlace::Inside, tokens);
  for (int32_t token : tokens)
    require(token >= 0 && token < tokenizer.vocabulary);
  std::string decoded = tokenizer.decode(tokens, text.size() % 2 == 0);
  require(validBytes(decoded) == decoded.size());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzInput input(data, size);
  bool isHub = input.byte() % 2 == 0;
  std::string_view file = input.file();
  std::string text = repairUtf8(input.last().substr(0, 300));
  require(validBytes(text) == text.size());
  try {
    use(isHub ? *readHubTokenizer(file, "t") : *readSentencePiece(file, "t"),
        text);
  } catch (const InputError &) {
  }
  return 0;
}
