// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/Option.h"
#include "runtime/text/Nearest.h"
#include "runtime/text/Text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace rota {

using Texts = std::vector<std::string>;

std::string expected(const std::string &rule, const std::string &got) {
  return "expected " + rule + ", got " + got;
}

static std::string quote(const std::string &text) { return "'" + text + "'"; }

/// "an integer from 1 to 8", "a number of at least 0".
static std::string numberRule(const Option &option, const std::string &kind) {
  auto bound = [](double value) {
    return std::abs(value) < 1e18 && value == std::floor(value)
               ? std::to_string(int64_t(value))
               : numberText(value);
  };
  if (std::isinf(option.maximum) && std::isinf(option.minimum))
    return kind;
  if (std::isinf(option.maximum))
    return kind + " of at least " + bound(option.minimum);
  return kind + " from " + bound(option.minimum) + " to " +
         bound(option.maximum);
}

static std::string choiceRule(const Texts &choices) {
  std::string rule;
  for (const std::string &choice : choices)
    rule += (rule.empty() ? "" : ", ") + quote(choice);
  return choices.size() == 1 ? rule : "one of " + rule;
}

/// The whole text as a number of the option's range.
template <typename Number>
static bool readNumber(const Option &option, const std::string &text,
                       Number &number) {
  const char *end = text.data() + text.size();
  auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end &&
         std::isfinite(double(number)) && double(number) >= option.minimum &&
         double(number) <= option.maximum;
}

namespace {

/// Sets a variable from texts; one overload for each type of variable.
struct TextAssigner {
  const Option &option;
  const Texts &texts;

  std::string operator()(std::string *variable) const {
    if (std::string error = check(texts.back()); !error.empty())
      return error;
    *variable = texts.back();
    return "";
  }
  std::string operator()(int64_t *variable) const {
    return assignNumber<int64_t>(*variable);
  }
  std::string operator()(std::optional<int64_t> *variable) const {
    return assignNumber<int64_t>(*variable);
  }
  std::string operator()(double *variable) const {
    return assignNumber<double>(*variable);
  }
  std::string operator()(std::optional<double> *variable) const {
    return assignNumber<double>(*variable);
  }
  std::string operator()(bool *variable) const {
    if (texts.back() != "true" && texts.back() != "false")
      return expected(ruleOf(option), quote(texts.back()));
    *variable = texts.back() == "true";
    return "";
  }
  std::string operator()(Texts *variable) const {
    for (const std::string &text : texts)
      if (std::string error = check(text); !error.empty())
        return error;
    *variable = texts;
    return "";
  }
  std::string operator()(const JoinedList &list) const {
    std::string joined;
    for (const std::string &text : texts) {
      if (std::string error = check(text); !error.empty())
        return error;
      joined += (joined.empty() ? "" : ",") + text;
    }
    *list.text = joined;
    return "";
  }
  std::string operator()(const NumberList &list) const {
    std::vector<int64_t> numbers;
    for (const std::string &text : texts)
      if (!readNumber(option, text, numbers.emplace_back()))
        return expected(ruleOf(option), quote(text));
    list.set(numbers);
    return "";
  }
  std::string operator()(const Choice &choice) const {
    std::string error = check(texts.back());
    if (error.empty())
      choice.set(
          static_cast<int>(std::ranges::find(choice.names, texts.back()) -
                           choice.names.begin()));
    return error;
  }

private:
  std::string check(const std::string &text) const {
    if (text.empty())
      return expected("a value", "an empty text");
    const Texts &choices = choicesOf(option);
    if (!choices.empty() && std::ranges::find(choices, text) == choices.end())
      return expected(choiceRule(choices), quote(text));
    return "";
  }
  template <typename Number, typename Variable>
  std::string assignNumber(Variable &variable) const {
    Number number = 0;
    if (!readNumber(option, texts.back(), number))
      return expected(ruleOf(option), quote(texts.back()));
    variable = number;
    return "";
  }
};

struct RuleWriter {
  const Option &option;
  std::string operator()(const std::string *) const { return "a string"; }
  std::string operator()(const int64_t *) const {
    return numberRule(option, "an integer");
  }
  std::string operator()(const std::optional<int64_t> *) const {
    return numberRule(option, "an integer");
  }
  std::string operator()(const double *) const {
    return numberRule(option, "a number");
  }
  std::string operator()(const std::optional<double> *) const {
    return numberRule(option, "a number");
  }
  std::string operator()(const bool *) const { return "true or false"; }
  std::string operator()(const Texts *) const { return list(); }
  std::string operator()(const JoinedList &) const { return list(); }
  std::string operator()(const NumberList &) const {
    return numberRule(option, "an integer");
  }
  std::string operator()(const Choice &) const { return "a string"; }
  static std::string list() { return "a string or an array of strings"; }
};

struct TextReader {
  Texts operator()(const std::string *value) const {
    return unlessEmpty(*value);
  }
  Texts operator()(const int64_t *value) const {
    return {std::to_string(*value)};
  }
  Texts operator()(const std::optional<int64_t> *value) const {
    return *value ? Texts{std::to_string(**value)} : Texts();
  }
  Texts operator()(const double *value) const { return {numberText(*value)}; }
  Texts operator()(const std::optional<double> *value) const {
    return *value ? Texts{numberText(**value)} : Texts();
  }
  Texts operator()(const bool *value) const {
    return {*value ? "true" : "false"};
  }
  Texts operator()(const Texts *value) const { return *value; }
  Texts operator()(const JoinedList &list) const {
    return unlessEmpty(*list.text);
  }
  Texts operator()(const NumberList &list) const {
    Texts texts;
    for (int64_t number : list.numbers())
      texts.push_back(std::to_string(number));
    return texts;
  }
  Texts operator()(const Choice &choice) const {
    return unlessEmpty(choice.text());
  }
  static Texts unlessEmpty(const std::string &text) {
    return text.empty() ? Texts() : Texts{text};
  }
};

} // namespace

std::string assignText(const Option &option, const Texts &texts) {
  return std::visit(TextAssigner{option, texts}, option.variable);
}

const Texts &choicesOf(const Option &option) {
  const Choice *choice = std::get_if<Choice>(&option.variable);
  return choice ? choice->names : option.choices;
}

std::string ruleOf(const Option &option) {
  return std::visit(RuleWriter{option}, option.variable);
}

Texts valueTexts(const Option &option) {
  return std::visit(TextReader(), option.variable);
}

const Option *findOption(const std::vector<Option> &table,
                         std::string_view name, unsigned commands) {
  for (const Option &option : table)
    if (option.name == name && (option.commands & commands))
      return &option;
  return nullptr;
}

Texts missingOptions(const std::vector<Option> &table, Command command,
                     const std::set<std::string, std::less<>> &given) {
  Texts missing;
  for (const Option &option : table)
    if ((option.requiredBy & unsigned(command)) && !given.contains(option.name))
      missing.push_back(option.name);
  return missing;
}

std::string missingText(const Texts &options) {
  std::string text;
  for (size_t i = 0; i < options.size(); ++i)
    text += (i == 0                    ? ""
             : i + 1 == options.size() ? " and "
                                       : ", ") +
            quote("--" + options[i]);
  return text + (options.size() == 1 ? " is missing" : " are missing");
}

std::string nearestOf(const Texts &names, std::string_view name) {
  return didYouMean(nearestName(name, names));
}

/// "lr" of "learning-rate"; empty for a single word.
static std::string initials(std::string_view name) {
  std::string letters;
  for (size_t i = 0; i < name.size(); ++i)
    if (i == 0 || name[i - 1] == '-')
      letters += name[i];
  return letters.size() > 1 ? letters : "";
}

std::string otherName(const std::vector<Option> &table, std::string_view name,
                      unsigned commands, const std::string &prefix) {
  // Names of other tools, and of this one before; the words after an option are
  // what it takes.
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"lr", "learning-rate"},    {"chunks", "repeats"},
      {"ranks", "stages"},        {"outer", "unpipelined"},
      {"stages", "mesh stage=N"}, {"model-parallel", "mesh tensor=N"},
      {"epochs", "steps"}};
  for (auto [other, meant] : names)
    if (name == other &&
        findOption(table, meant.substr(0, meant.find(' ')), commands))
      return didYouMean(prefix + std::string(meant));
  return "";
}

std::string suggestion(const std::vector<Option> &table, std::string_view name,
                       unsigned commands, const std::string &prefix) {
  if (std::string other = otherName(table, name, commands, prefix);
      !other.empty())
    return other;
  Texts names;
  for (const Option &option : table)
    if (option.commands & commands)
      names.push_back(option.name);
  for (const std::string &option : names)
    if (name == initials(option))
      return didYouMean(prefix + option);
  std::string found(nearestName(name, names));
  for (const std::string &option : names)
    if (found.empty() && name.size() > 2 && option.starts_with(name))
      found = option;
  return didYouMean(found.empty() ? "" : prefix + found);
}

} // namespace rota
