// SPDX-License-Identifier: Apache-2.0
//
// Assignment of values to options by their rules: the same rules for a flag's
// text and for a value of RUN.json.
#include "tools/rota/OptionTable.h"

#include "models/JsonFile.h"

#include "llvm/ADT/StringExtras.h"

#include <charconv>
#include <cmath>

using namespace rota;
using Texts = std::vector<std::string>;

/// The shortest text that reads back to the same number.
static std::string numberText(double value) {
  char text[64];
  auto result = std::to_chars(text, text + sizeof(text), value);
  return std::string(text, result.ptr);
}

/// "an integer from 1 to 8", "a number of at least 0".
static std::string numberRule(const OptionSpec &option, const char *kind) {
  auto bound = [](double value) {
    return std::abs(value) < 1e18 && value == std::floor(value)
               ? std::to_string(int64_t(value))
               : numberText(value);
  };
  if (std::isinf(option.maximum))
    return std::string(kind) + " of at least " + bound(option.minimum);
  return std::string(kind) + " from " + bound(option.minimum) + " to " +
         bound(option.maximum);
}

static std::string expected(const std::string &rule, const std::string &got) {
  return "expected " + rule + ", got " + got;
}

static std::string quote(const std::string &text) { return "'" + text + "'"; }

static std::string choiceRule(const OptionSpec &option) {
  std::string rule = option.choices.size() == 1 ? "" : "one of ";
  return rule + llvm::join(llvm::map_range(option.choices, quote), ", ");
}

/// The whole text as a number of the option's range.
template <typename Number>
static bool readNumber(const OptionSpec &option, const std::string &text,
                       Number &number) {
  const char *end = text.data() + text.size();
  auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end &&
         std::isfinite(double(number)) && double(number) >= option.minimum &&
         double(number) <= option.maximum;
}

static bool isChoice(const OptionSpec &option, const std::string &text) {
  return option.choices.empty() || llvm::is_contained(option.choices, text);
}

namespace {

/// Sets a member from texts; one overload for each type of member.
struct TextAssigner {
  const OptionSpec &option;
  const Texts &texts;
  RunOptions &options;

  std::string operator()(std::string RunOptions::*member) const {
    if (texts.back().empty())
      return expected("a value", "an empty text");
    if (!isChoice(option, texts.back()))
      return expected(choiceRule(option), quote(texts.back()));
    options.*member = texts.back();
    return "";
  }
  std::string operator()(int64_t RunOptions::*member) const {
    int64_t number = 0;
    if (!readNumber(option, texts.back(), number))
      return expected(numberRule(option, "an integer"), quote(texts.back()));
    options.*member = number;
    return "";
  }
  std::string operator()(double RunOptions::*member) const {
    double number = 0;
    if (!readNumber(option, texts.back(), number))
      return expected(numberRule(option, "a number"), quote(texts.back()));
    options.*member = number;
    return "";
  }
  std::string operator()(bool RunOptions::*member) const {
    if (texts.back() != "true" && texts.back() != "false")
      return expected("true or false", quote(texts.back()));
    options.*member = texts.back() == "true";
    return "";
  }
  std::string operator()(Texts RunOptions::*member) const {
    for (const std::string &text : texts)
      if (text.empty())
        return expected("a value", "an empty text");
      else if (!isChoice(option, text))
        return expected(choiceRule(option), quote(text));
    options.*member = texts;
    return "";
  }
};

} // namespace

std::string rota::assignText(const OptionSpec &option, const Texts &texts,
                             RunOptions &options) {
  std::string error =
      std::visit(TextAssigner{option, texts, options}, option.member);
  if (error.empty())
    options.given.insert(option.name);
  return error;
}

/// What a value of the file must be for this option.
static std::string jsonRule(const OptionSpec &option) {
  if (std::holds_alternative<int64_t RunOptions::*>(option.member))
    return numberRule(option, "an integer");
  if (std::holds_alternative<double RunOptions::*>(option.member))
    return numberRule(option, "a number");
  if (std::holds_alternative<bool RunOptions::*>(option.member))
    return "true or false";
  if (std::holds_alternative<Texts RunOptions::*>(option.member))
    return "a string or an array of strings";
  return "a string";
}

std::string rota::assignJson(const OptionSpec &option,
                             const nlohmann::json &value, RunOptions &options) {
  bool isList = std::holds_alternative<Texts RunOptions::*>(option.member);
  bool isText =
      std::holds_alternative<std::string RunOptions::*>(option.member);
  Texts texts;
  bool fits = false;
  if (value.is_string() && (isText || isList)) {
    texts = {value.get<std::string>()};
    fits = true;
  } else if (value.is_array() && isList) {
    fits = !value.empty();
    for (const nlohmann::json &element : value) {
      fits = fits && element.is_string();
      if (fits)
        texts.push_back(element.get<std::string>());
    }
  } else if (value.is_boolean()) {
    texts = {value.get<bool>() ? "true" : "false"};
    fits = std::holds_alternative<bool RunOptions::*>(option.member);
  } else if (value.is_number()) {
    bool isReal = std::holds_alternative<double RunOptions::*>(option.member);
    texts = {value.is_number_integer() ? value.dump()
                                       : numberText(value.get<double>())};
    fits = isReal ||
           (value.is_number_integer() &&
            std::holds_alternative<int64_t RunOptions::*>(option.member));
  }
  if (!fits)
    return expected(jsonRule(option), mlir::rota::shortText(value));
  return assignText(option, texts, options);
}

namespace {

struct TextReader {
  const RunOptions &options;
  Texts operator()(std::string RunOptions::*member) const {
    return options.*member == "" ? Texts() : Texts{options.*member};
  }
  Texts operator()(int64_t RunOptions::*member) const {
    return {std::to_string(options.*member)};
  }
  Texts operator()(double RunOptions::*member) const {
    return {numberText(options.*member)};
  }
  Texts operator()(bool RunOptions::*member) const {
    return {options.*member ? "true" : "false"};
  }
  Texts operator()(Texts RunOptions::*member) const { return options.*member; }
};

} // namespace

Texts rota::valueTexts(const OptionSpec &option, const RunOptions &options) {
  return std::visit(TextReader{options}, option.member);
}
