// SPDX-License-Identifier: Apache-2.0
//
// A pattern of tokenizer.json: a regular expression (PCRE2), or a text.
#ifndef ROTA_RUNTIME_TOKENIZER_EXPRESSION_H
#define ROTA_RUNTIME_TOKENIZER_EXPRESSION_H

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace rota {

/// Bytes [begin, end) of a text.
struct Range {
  size_t begin, end;
};

/// What is compiled may be used by all threads; each has a Matcher of its own.
class Expression {
public:
  /// Throws InputError when the expression is wrong or needs what PCRE2 lacks.
  static Expression regular(const std::string &source);
  static Expression literal(const std::string &text);

  class Matcher;

private:
  Expression() = default;

  std::string source; // of a literal: the text
  bool isLiteral = false;
  std::shared_ptr<void> code;
};

/// Searches texts for one expression.
class Expression::Matcher {
public:
  explicit Matcher(const Expression &expression);
  /// Another thread's.
  Matcher(const Matcher &other) : Matcher(other.expression) {}

  /// Appends the matches from left to right, which do not overlap. An empty one
  /// right after another match does not count. Throws InputError when the
  /// expression takes too many steps.
  void find(std::string_view text, std::vector<Range> &matches);

private:
  bool search(std::string_view text, size_t from, Range &match);

  const Expression expression;
  std::shared_ptr<void> data;  // of PCRE2: place of the last match
  std::shared_ptr<void> stack; // of code that is compiled by PCRE2
  std::shared_ptr<void> context;
};

} // namespace rota

#endif // ROTA_RUNTIME_TOKENIZER_EXPRESSION_H
