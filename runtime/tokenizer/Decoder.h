// SPDX-License-Identifier: Apache-2.0
//
// Decoders of tokenizer.json: steps from the texts of tokens to a text.
#ifndef ROTA_RUNTIME_TOKENIZER_DECODER_H
#define ROTA_RUNTIME_TOKENIZER_DECODER_H

#include "runtime/tokenizer/text/JsonNode.h"

#include <functional>
#include <string>
#include <vector>

namespace rota {

/// Changes the texts, which are put side by side after the last step.
using DecoderStep = std::function<void(std::vector<std::string> &texts)>;

/// The steps of the value of `decoder`. Throws InputError that names what is
/// wrong or unknown.
std::vector<DecoderStep> readDecoder(const JsonNode &node);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_DECODER_H
