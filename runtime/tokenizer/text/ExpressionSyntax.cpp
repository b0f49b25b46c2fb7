// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer/text/ExpressionSyntax.h"
#include "runtime/Error.h"
#include "runtime/tokenizer/text/NewCharacters.h"

#include <fmt/format.h>

namespace rota {

// The property White_Space.
static constexpr std::string_view kSpace =
    R"(\x09-\x0d\x20\x85\xa0\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
static constexpr std::string_view kNoSpace =
    R"(\x00-\x08\x0e-\x1f\x21-\x84\x86-\x9f\xa1-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
// Word characters besides \p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}: those below 256 are
// Latin-1's, the others are alphabetic.
static constexpr std::string_view kOtherWord =
    R"(\xb2\xb3\xb9\xbc-\xbe\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
static constexpr std::string_view kCategories[] = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N",
    "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po",
    "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"};

static bool isCategory(std::string_view name) {
  for (std::string_view category : kCategories)
    if (name == category)
      return true;
  return false;
}

static std::string rangesOf(const std::vector<NewCharacters> &table,
                            std::string_view name, bool isPrefix) {
  std::string text;
  for (const NewCharacters &row : table)
    if (isPrefix ? row.property.starts_with(name) : row.property == name)
      text += fmt::format("\\x{{{:x}}}-\\x{{{:x}}}", uint32_t(row.first),
                          uint32_t(row.last));
  return text;
}

/// The members of a property, as the inside of a class.
static std::string membersOf(std::string_view name) {
  if (isCategory(name))
    return fmt::format("\\p{{{}}}{}", name,
                       rangesOf(newCharacters(), name, /*isPrefix=*/true));
  return fmt::format("\\p{{sc:{}}}{}", name,
                     rangesOf(newScriptCharacters(), name, /*isPrefix=*/false));
}

static std::string wordMembers() {
  std::string text(kOtherWord);
  for (const char *name : {"L", "M", "Nd", "Nl", "Pc"})
    text += membersOf(name);
  return text;
}

namespace {

class Translation {
public:
  explicit Translation(std::string_view source) : source(source) {}

  std::string run() {
    while (at < source.size())
      step();
    return std::move(out);
  }

private:
  [[noreturn]] void refuse(const std::string &what) const {
    throw InputError(fmt::format("expression '{}': {} at byte {} is not "
                                 "supported",
                                 source.substr(0, 200), what, at));
  }
  std::string_view rest() const { return source.substr(at); }

  void step() {
    char c = source[at];
    if (c == '\\')
      return escape(/*inClass=*/false);
    if (c == '[')
      return characterClass();
    if (c == '(' && rest().starts_with("(?"))
      return group();
    if (c == '{' && interval())
      return;
    out += c;
    ++at;
  }

  /// `{n}`, `{n,m}`, `{,m}`. False: the brace is a character.
  bool interval() {
    size_t end = rest().find('}');
    if (end == std::string_view::npos || end < 2)
      return false;
    std::string_view inside = rest().substr(1, end - 1);
    if (inside.find_first_not_of("0123456789,") != std::string_view::npos)
      return false;
    if (source.substr(at + end + 1).starts_with("+"))
      refuse("an interval with '+' after it");
    out += fmt::format("{{{}{}}}", inside.starts_with(",") ? "0" : "", inside);
    at += end + 1;
    return true;
  }

  /// `(?`, with options whose letter m is PCRE2's s.
  void group() {
    size_t end = at + 2;
    while (end < source.size() &&
           std::string_view("imx-").find(source[end]) != std::string_view::npos)
      ++end;
    bool areOptions =
        end > at + 2 && end < source.size() &&
        std::string_view(":)").find(source[end]) != std::string_view::npos;
    if (!areOptions) {
      constexpr std::string_view kKnown = ":=!><#";
      if (at + 2 >= source.size() ||
          kKnown.find(source[at + 2]) == std::string_view::npos)
        refuse(fmt::format("the group '{}'", rest().substr(0, 3)));
      out += "(?";
      at += 2;
      return;
    }
    for (char c : source.substr(at, end - at))
      out += c == 'm' ? 's' : c;
    at = end;
  }

  /// The name of `\p{NAME}`, and whether it is negated.
  std::string_view property(bool &negated) {
    if (at + 2 >= source.size() || source[at + 2] != '{')
      refuse("a property without braces");
    size_t end = source.find('}', at);
    if (end == std::string_view::npos)
      refuse("a property without its end");
    std::string_view name = source.substr(at + 3, end - at - 3);
    negated = source[at + 1] == 'P';
    if (name.starts_with('^')) {
      name.remove_prefix(1);
      negated = !negated;
    }
    at = end + 1;
    return name;
  }

  /// Adds members of a class, or what is not among them.
  void members(std::string_view inside, bool negated, bool inClass) {
    if (!inClass)
      out += fmt::format("[{}{}]", negated ? "^" : "", inside);
    else if (!negated)
      out += inside;
    else
      refuse("a negated property in a class");
  }

  void escape(bool inClass) {
    if (at + 1 >= source.size())
      refuse("a backslash");
    char c = source[at + 1];
    if (c == 'p' || c == 'P') {
      bool negated = false;
      std::string_view name = property(negated);
      if (inClass && negated && isCategory(name)) {
        out += fmt::format("\\P{{{}}}", name); // new characters are left out
        return;
      }
      return members(membersOf(name), negated, inClass);
    }
    at += 2;
    switch (c) {
    case 's':
      return members(kSpace, false, inClass);
    case 'S':
      return inClass ? void(out += kNoSpace) : members(kSpace, true, inClass);
    case 'd':
    case 'D':
      return members(membersOf("Nd"), c == 'D', inClass);
    case 'w':
    case 'W':
      return members(wordMembers(), c == 'W', inClass);
    case 'h':
    case 'H':
      return members("0-9a-fA-F", c == 'H', inClass);
    case 'v':
      out += "\\x0b";
      return;
    case 'u':
      return hexadecimal();
    case 'b':
    case 'B':
      return inClass ? void(out += "\\x08") : wordBoundary(c == 'B');
    default:
      if (std::string_view("acefntrxAzZGkR0123456789").find(c) ==
              std::string_view::npos &&
          ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
        at -= 2;
        refuse(fmt::format("'\\{}'", c));
      }
      out += '\\';
      out += c;
    }
  }

  /// After `\u`: four digits.
  void hexadecimal() {
    std::string_view digits = rest().substr(0, 4);
    if (digits.size() < 4 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") !=
            std::string_view::npos)
      refuse("'\\u' without four digits");
    out += fmt::format("\\x{{{}}}", digits);
    at += 4;
  }

  void wordBoundary(bool negated) {
    std::string word = wordMembers();
    // Before a boundary or after it is a word, not on both sides.
    out += fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", word,
                       negated ? '=' : '!', negated ? '!' : '=');
  }

  void characterClass() {
    out += '[';
    ++at;
    if (rest().starts_with('^')) {
      out += '^';
      ++at;
    }
    if (rest().starts_with(']'))
      refuse("a class that begins with ']'");
    while (at < source.size() && source[at] != ']') {
      if (rest().starts_with("&&"))
        refuse("an intersection of classes");
      if (source[at] == '[')
        refuse("a class in a class");
      if (source[at] == '\\') {
        escape(/*inClass=*/true);
      } else {
        out += source[at];
        ++at;
      }
    }
    if (at == source.size())
      refuse("a class without its end");
    out += ']';
    ++at;
  }

  const std::string_view source;
  std::string out;
  size_t at = 0;
};

} // namespace

std::string translateExpression(std::string_view expression) {
  return Translation(expression).run();
}

} // namespace rota
