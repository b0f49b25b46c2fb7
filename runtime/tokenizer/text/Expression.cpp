// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/Expression.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/text/ExpressionSyntax.h"
#include "runtime/tokenizer/text/Utf8.h"

#include <fmt/format.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace rota {

static constexpr size_t kStackBegin = 32 << 10, kStackMost = 64 << 20;

static std::string errorText(int code) {
  char text[256];
  pcre2_get_error_message(code, reinterpret_cast<PCRE2_UCHAR *>(text),
                          sizeof text);
  return text;
}

Expression Expression::regular(const std::string &source) {
  std::string translated = translateExpression(source);
  int error = 0;
  PCRE2_SIZE place = 0;
  pcre2_code *code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_UTF_CHECK, &error,
      &place, nullptr);
  if (!code)
    throw InputError(fmt::format("expression '{}': {}", source.substr(0, 200),
                                 errorText(error)));
  Expression expression;
  expression.source = source;
  expression.code = {code, [](void *code) {
                       pcre2_code_free(static_cast<pcre2_code *>(code));
                     }};
  // Without it matches are slower.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return expression;
}

Expression Expression::literal(const std::string &text) {
  if (text.empty())
    return regular(text);
  Expression expression;
  expression.source = text;
  expression.isLiteral = true;
  return expression;
}

Expression::Matcher::Matcher(const Expression &expression)
    : expression(expression) {
  if (expression.isLiteral)
    return;
  data = {pcre2_match_data_create(1, nullptr), [](void *data) {
            pcre2_match_data_free(static_cast<pcre2_match_data *>(data));
          }};
  stack = {pcre2_jit_stack_create(kStackBegin, kStackMost, nullptr),
           [](void *stack) {
             pcre2_jit_stack_free(static_cast<pcre2_jit_stack *>(stack));
           }};
  context = {pcre2_match_context_create(nullptr), [](void *context) {
               pcre2_match_context_free(
                   static_cast<pcre2_match_context *>(context));
             }};
  pcre2_jit_stack_assign(static_cast<pcre2_match_context *>(context.get()),
                         nullptr, stack.get());
}

bool Expression::Matcher::search(std::string_view text, size_t from,
                                 Range &match) {
  if (expression.isLiteral) {
    size_t at = text.find(expression.source, from);
    match = {at, at + expression.source.size()};
    return at != text.npos;
  }
  auto *results = static_cast<pcre2_match_data *>(data.get());
  int found = pcre2_match(static_cast<pcre2_code *>(expression.code.get()),
                          reinterpret_cast<PCRE2_SPTR>(text.data()),
                          text.size(), from, PCRE2_NO_UTF_CHECK, results,
                          static_cast<pcre2_match_context *>(context.get()));
  if (found == PCRE2_ERROR_NOMATCH)
    return false;
  if (found < 0)
    throw InputError(fmt::format("expression '{}': {}",
                                 expression.source.substr(0, 200),
                                 errorText(found)));
  PCRE2_SIZE *places = pcre2_get_ovector_pointer(results);
  match = {places[0], std::max(places[0], places[1])};
  return true;
}

void Expression::Matcher::find(std::string_view text,
                               std::vector<Range> &matches) {
  size_t from = 0, end = text.npos; // end of the last match
  Range match;
  while (from <= text.size() && search(text, from, match)) {
    if (match.begin == match.end && match.end == end) {
      from += from < text.size() ? size_t(charBytes(text[from])) : 1;
      continue;
    }
    matches.push_back(match);
    from = end = match.end;
  }
}

} // namespace rota
