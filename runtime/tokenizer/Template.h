// SPDX-License-Identifier: Apache-2.0
//
// Post-processors of tokenizer.json: tokens before and after those of a text.
#ifndef ROTA_RUNTIME_TOKENIZER_TEMPLATE_H
#define ROTA_RUNTIME_TOKENIZER_TEMPLATE_H

#include "runtime/tokenizer/text/JsonNode.h"

#include <vector>

namespace rota {

struct Template {
  std::vector<int32_t> before, after;
};

/// The template for one text in the value of `post_processor`. Throws
/// InputError that names what is wrong or unknown.
Template readTemplate(const JsonNode &node);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_TEMPLATE_H
