// SPDX-License-Identifier: Apache-2.0
//
// Normalizers of tokenizer.json: steps that change a text before it is cut.
#ifndef ROTA_RUNTIME_TOKENIZER_NORMALIZER_H
#define ROTA_RUNTIME_TOKENIZER_NORMALIZER_H

#include "runtime/tokenizer/text/JsonNode.h"

#include <functional>
#include <string>
#include <vector>

namespace rota {

/// A text on its way to tokens.
struct NormalizedText {
  std::string text;
  /// Its first character comes from the first one of the document.
  bool isFirst = true;
  /// Tokens of the same document came before, so that nothing is put in front.
  bool continues = false;
};

/// Steps have the state of one thread: a copy is for another.
using NormalizerStep = std::function<void(NormalizedText &)>;

/// The steps of the value of `normalizer`. Throws InputError that names what is
/// wrong or unknown.
std::vector<NormalizerStep> readNormalizer(const JsonNode &node);

/// Normal forms by ICU.
enum class NormalForm { C, D, KC, KD };
void normalizeTo(NormalForm form, std::string &text);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_NORMALIZER_H
