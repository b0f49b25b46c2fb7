// SPDX-License-Identifier: Apache-2.0
//
// From the regular expressions of tokenizer.json, which are Oniguruma's in its
// Ruby syntax, to those of PCRE2.
//
// The same text differs in: \h, \v, \s, \w, \b, properties of characters that
// are newer than PCRE2, (?m), {,n} and the interval with a plus after it.
// https://github.com/kkos/oniguruma/blob/master/doc/RE
#ifndef ROTA_RUNTIME_TOKENIZER_EXPRESSIONSYNTAX_H
#define ROTA_RUNTIME_TOKENIZER_EXPRESSIONSYNTAX_H

#include <string>
#include <string_view>

namespace rota {

/// The expression for PCRE2 with UTF, UCP and MULTILINE. Throws InputError for
/// what has no translation.
std::string translateExpression(std::string_view expression);

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_EXPRESSIONSYNTAX_H
